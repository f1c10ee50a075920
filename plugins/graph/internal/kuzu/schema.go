//go:build linux && (amd64 || arm64) && !lite

package kuzu

// schema has an entity for each node, or a node of the empty type that is only
// the end of relations or was deleted. Its key is the namespace and the ID. words is a list of
// words between spaces. A relation has the IDs of its ends, so that they need
// not be looked up. No column is ever null: kuzu/lookup.h relies on that.
var schema = []string{
	`CREATE NODE TABLE IF NOT EXISTS Entity(key STRING PRIMARY KEY, namespace STRING, id STRING, type STRING, created_at INT64, updated_at INT64, source STRING, properties STRING, text STRING, facts STRING, words STRING, embedding BLOB)`,
	`CREATE REL TABLE IF NOT EXISTS Relation(FROM Entity TO Entity, type STRING, valid_from INT64, valid_to INT64, from_id STRING, to_id STRING, weight DOUBLE, created_at INT64, updated_at INT64, source STRING, properties STRING)`,
	`CREATE NODE TABLE IF NOT EXISTS Meta(name STRING PRIMARY KEY, value INT64)`,
}

// entityColumns are what lookups of entities return, in this order; facts and
// embedding follow on request.
var entityColumns = []string{"id", "type", "created_at", "updated_at", "source", "properties", "text"}

// leanColumns are what lookups of relations return, and otherColumns the rest.
var (
	leanColumns  = []string{"type", "valid_from", "valid_to", "from_id", "to_id", "weight"}
	otherColumns = []string{"created_at", "updated_at", "source", "properties"}
)

// The statements of writes. Several rows are matched by a join that reads the
// keys of all entities, one row by the index.
const (
	createEntities = `UNWIND $rows AS row CREATE (:Entity {key: row.key, namespace: row.namespace, id: row.id, type: row.type, created_at: row.created_at, updated_at: row.updated_at, source: row.source, properties: row.properties, text: row.text, facts: row.facts, words: row.words, embedding: row.embedding})`
	updateEntity   = `MATCH (e:Entity) WHERE e.key = $key SET e.type = $type, e.created_at = $created_at, e.updated_at = $updated_at, e.source = $source, e.properties = $properties, e.text = $text, e.facts = $facts, e.words = $words, e.embedding = $embedding`
	updateEntities = `UNWIND $rows AS row WITH row.key AS k, row AS row MATCH (e:Entity) WHERE e.key = k SET e.type = row.type, e.created_at = row.created_at, e.updated_at = row.updated_at, e.source = row.source, e.properties = row.properties, e.text = row.text, e.facts = row.facts, e.words = row.words, e.embedding = row.embedding`

	relationFields  = ` CREATE (s)-[:Relation {type: row.type, valid_from: row.valid_from, valid_to: row.valid_to, from_id: row.from_id, to_id: row.to_id, weight: row.weight, created_at: row.created_at, updated_at: row.updated_at, source: row.source, properties: row.properties}]->(t)`
	createRelation  = `MATCH (s:Entity), (t:Entity) WHERE s.key = $from_key AND t.key = $to_key CREATE (s)-[:Relation {type: $type, valid_from: $valid_from, valid_to: $valid_to, from_id: $from_id, to_id: $to_id, weight: $weight, created_at: $created_at, updated_at: $updated_at, source: $source, properties: $properties}]->(t)`
	createRelations = `UNWIND $rows AS row WITH row.from_key AS a, row.to_key AS b, row AS row MATCH (s:Entity) WHERE s.key = a WITH s, b, row MATCH (t:Entity) WHERE t.key = b` + relationFields
	oneRelation     = `MATCH (s:Entity)-[r:Relation]->(t:Entity) WHERE s.key = $from_key AND t.key = $to_key AND r.type = $type AND r.valid_from = $valid_from `
	updateRelation  = oneRelation + `SET r.valid_to = $valid_to, r.weight = $weight, r.created_at = $created_at, r.updated_at = $updated_at, r.source = $source, r.properties = $properties`
	deleteRelation  = oneRelation + `DELETE r`

	setDimension = `MERGE (m:Meta {name: 'dimension'}) SET m.value = $value`
	getDimension = `MATCH (m:Meta) WHERE m.name = 'dimension' RETURN m.value`
)
