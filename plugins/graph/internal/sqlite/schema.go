package sqlite

// applicationID marks the file as a graph ("teaG"); format is its version.
const (
	applicationID = 0x74656147
	format        = 1
)

// schema has integers in place of names, which keeps the indexes small. A node is an
// entity, or, if its kind is NULL, only the end of relations. The rest of an entity is
// its body, so that the nodes for traversals are on few pages.
const schema = `
CREATE TABLE namespace (pk INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE kind (pk INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE node (
	pk INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, id TEXT NOT NULL, kind INTEGER,
	UNIQUE (namespace, id)
);
CREATE TABLE body (
	pk INTEGER PRIMARY KEY, created INTEGER NOT NULL, updated INTEGER NOT NULL, source TEXT NOT NULL, properties TEXT NOT NULL,
	text TEXT NOT NULL, facts TEXT NOT NULL
);
CREATE TABLE relation (
	source_pk INTEGER NOT NULL, kind INTEGER NOT NULL, target_pk INTEGER NOT NULL, valid_from INTEGER NOT NULL,
	valid_to INTEGER NOT NULL, weight REAL NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, source TEXT NOT NULL, properties TEXT NOT NULL,
	PRIMARY KEY (source_pk, kind, target_pk, valid_from)
) WITHOUT ROWID;
CREATE INDEX relation_in ON relation (target_pk, kind, source_pk, valid_from, valid_to, weight);
CREATE TABLE embedding (pk INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
INSERT INTO word (word, rank) VALUES ('hashsize', 131072);
`
