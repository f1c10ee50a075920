-- The last numbers of changes. A writer locks the row of its kind until it is
-- committed.
CREATE TABLE tea_seq (name text PRIMARY KEY, n bigint NOT NULL);
INSERT INTO tea_seq VALUES ('documents', 0), ('vectors', 0);

-- A key has up to 4,096 bytes, more than an index takes: a row is found by the
-- hash of namespace and key, and listed by the first 1,024 bytes of the key.
CREATE TABLE ltm (
	hash bytea PRIMARY KEY,
	id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
	namespace text COLLATE "C" NOT NULL,
	key bytea NOT NULL,
	value text NOT NULL,
	metadata text,
	content_hash text NOT NULL,
	created_at bigint NOT NULL, -- microseconds since 1970, as all times
	updated_at bigint NOT NULL,
	expires_at bigint,
	-- The last write has created the entry.
	fresh boolean NOT NULL,
	words tsvector NOT NULL
);
CREATE INDEX ltm_by_key ON ltm (namespace, substring(key FROM 1 FOR 1024));
CREATE INDEX ltm_by_expiry ON ltm (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ltm_by_words ON ltm USING gin (words);

-- The body is text: jsonb has no \u0000. jsonb_body is NULL for such documents,
-- and their fields are absent in conditions.
CREATE TABLE documents (
	kind text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	body text NOT NULL,
	fields jsonb NOT NULL,
	version bigint NOT NULL,
	seq bigint NOT NULL,
	PRIMARY KEY (kind, id)
);
CREATE INDEX documents_by_seq ON documents (kind, seq);

CREATE TABLE vector_collections (name bytea PRIMARY KEY, dimension integer NOT NULL, born bigint NOT NULL);
CREATE TABLE vectors (
	hash bytea PRIMARY KEY, -- of collection and name
	id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
	collection bytea NOT NULL,
	name bytea NOT NULL,
	seq bigint NOT NULL,
	text bytea NOT NULL,
	embedding bytea NOT NULL, -- 32-bit floats, little-endian
	metadata text
);
CREATE INDEX vectors_by_seq ON vectors (collection, seq);
CREATE INDEX vectors_by_name ON vectors (collection, substring(name FROM 1 FOR 1024));
CREATE TABLE vectors_gone (seq bigint NOT NULL, collection bytea NOT NULL, id bigint NOT NULL);
CREATE INDEX vectors_gone_by_seq ON vectors_gone (collection, seq);

-- A blob that is replaced or removed keeps its parts for those who read it; gone
-- is when that was.
CREATE TABLE blobs (
	name text COLLATE "C" PRIMARY KEY,
	part_id bigint NOT NULL,
	size bigint NOT NULL,
	modified bigint NOT NULL
);
CREATE SEQUENCE blob_ids;
CREATE TABLE blob_parts (part_id bigint NOT NULL, n integer NOT NULL, data bytea NOT NULL, PRIMARY KEY (part_id, n));
ALTER TABLE blob_parts ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE blobs_gone (part_id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
