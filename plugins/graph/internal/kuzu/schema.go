//go:build linux && (amd64 || arm64) && !lite

package kuzu

import "github.com/the-edge-agent/tea/plugins/graph/internal/store"

// The names of the graph's tables.
const (
	entityTable   = "Entity"
	relationTable = "Relation"
)

// schema has a node for each entity. A node with the empty type is only the end of
// relations, or a deleted entity. Its key is the namespace and the ID. words is a list of
// words between spaces. A relation has the IDs of its ends, to save a lookup. No column is
// ever null: kuzu/lookup.h relies on that.
var schema = []string{
	`CREATE NODE TABLE IF NOT EXISTS Entity(key STRING PRIMARY KEY, namespace STRING, id STRING, type STRING, created_at INT64, updated_at INT64, source STRING, properties STRING, text STRING, facts STRING, words STRING, embedding BLOB)`,
	`CREATE REL TABLE IF NOT EXISTS Relation(FROM Entity TO Entity, type STRING, valid_from INT64, valid_to INT64, from_id STRING, to_id STRING, weight DOUBLE, created_at INT64, updated_at INT64, source STRING, properties STRING)`,
	`CREATE NODE TABLE IF NOT EXISTS Meta(name STRING PRIMARY KEY, value INT64)`,
}

// entityColumns are the columns that lookups of entities return, in this order; facts and
// embedding follow on request.
var entityColumns = []string{"id", "type", "created_at", "updated_at", "source", "properties", "text"}

// leanColumns are the columns that lookups of relations return, and otherColumns the rest.
var (
	leanColumns  = []string{"type", "valid_from", "valid_to", "from_id", "to_id", "weight"}
	otherColumns = []string{"created_at", "updated_at", "source", "properties"}
)

// Columns store these values for [store.Always] and [store.Forever]. The difference
// between the values of a column must fit into 64 bits: Kuzu compresses them by it, and
// returned 0 for the smallest integer beside a positive one.
const (
	always  = store.Always / 2
	forever = store.Forever / 2
)

func toColumn(instant int64) int64 {
	switch instant {
	case store.Always:
		return always
	case store.Forever:
		return forever
	}
	return instant
}

func fromColumn(instant int64) int64 {
	switch instant {
	case always:
		return store.Always
	case forever:
		return store.Forever
	}
	return instant
}

// The statements of writes. A statement for several rows matches them by a join that reads
// the keys of all entities; a statement for one row uses the index. The values of several
// rows are lists, one per column: a list of objects takes ten times as long.
const (
	eachRow        = `UNWIND range(1, $n) AS i `
	createEntities = eachRow + `CREATE (:Entity {key: $key[i], namespace: $namespace[i], id: $id[i], type: $type[i], created_at: $created_at[i], updated_at: $updated_at[i], source: $source[i], properties: $properties[i], text: $text[i], facts: $facts[i], words: $words[i], embedding: $embedding[i]})`
	updateEntity   = `MATCH (e:Entity) WHERE e.key = $key SET e.type = $type, e.created_at = $created_at, e.updated_at = $updated_at, e.source = $source, e.properties = $properties, e.text = $text, e.facts = $facts, e.words = $words, e.embedding = $embedding`
	updateEntities = eachRow + `WITH i, $key[i] AS k MATCH (e:Entity) WHERE e.key = k SET e.type = $type[i], e.created_at = $created_at[i], e.updated_at = $updated_at[i], e.source = $source[i], e.properties = $properties[i], e.text = $text[i], e.facts = $facts[i], e.words = $words[i], e.embedding = $embedding[i]`

	createRelation  = `MATCH (s:Entity), (t:Entity) WHERE s.key = $from_key AND t.key = $to_key CREATE (s)-[:Relation {type: $type, valid_from: $valid_from, valid_to: $valid_to, from_id: $from_id, to_id: $to_id, weight: $weight, created_at: $created_at, updated_at: $updated_at, source: $source, properties: $properties}]->(t)`
	createRelations = eachRow + `WITH i, $from_key[i] AS a, $to_key[i] AS b MATCH (s:Entity) WHERE s.key = a WITH s, b, i MATCH (t:Entity) WHERE t.key = b CREATE (s)-[:Relation {type: $type[i], valid_from: $valid_from[i], valid_to: $valid_to[i], from_id: $from_id[i], to_id: $to_id[i], weight: $weight[i], created_at: $created_at[i], updated_at: $updated_at[i], source: $source[i], properties: $properties[i]}]->(t)`
	oneRelation     = `MATCH (s:Entity)-[r:Relation]->(t:Entity) WHERE s.key = $from_key AND t.key = $to_key AND r.type = $type AND r.valid_from = $valid_from `
	updateRelation  = oneRelation + `SET r.valid_to = $valid_to, r.weight = $weight, r.created_at = $created_at, r.updated_at = $updated_at, r.source = $source, r.properties = $properties`
	updateRelations = eachRow + `WITH i, $from_key[i] AS a, $to_key[i] AS b, $type[i] AS y, $valid_from[i] AS f MATCH (s:Entity) WHERE s.key = a WITH s, i, b, y, f MATCH (t:Entity) WHERE t.key = b WITH s, t, i, y, f MATCH (s)-[r:Relation]->(t) WHERE r.type = y AND r.valid_from = f SET r.valid_to = $valid_to[i], r.weight = $weight[i], r.created_at = $created_at[i], r.updated_at = $updated_at[i], r.source = $source[i], r.properties = $properties[i]`
	deleteRelation  = oneRelation + `DELETE r`

	setDimension = `MERGE (m:Meta {name: 'dimension'}) SET m.value = $value`
	getDimension = `MATCH (m:Meta) WHERE m.name = 'dimension' RETURN m.value`
)
