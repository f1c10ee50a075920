-- The memory as records with numbers, for archives and memory.sync. Triggers assign
-- the numbers and note deletions, so a device that still runs an older version of
-- the plugin does not lose any.

-- Writers of entries do not wait for each other: a change has a negative number,
-- in the order of the changes, until tea_number assigns one. A reader of changes
-- calls it first. The rows that are there have their numbers.
CREATE SEQUENCE ltm_changes;
GRANT USAGE ON SEQUENCE ltm_changes TO PUBLIC;
ALTER TABLE ltm ADD COLUMN seq bigint NOT NULL DEFAULT nextval('ltm_changes');
ALTER TABLE ltm ALTER COLUMN seq SET DEFAULT -nextval('ltm_changes');
INSERT INTO tea_seq SELECT 'ltm', coalesce(max(seq), 0) FROM ltm;
CREATE INDEX ltm_by_seq ON ltm (seq);
CREATE INDEX documents_by_change ON documents (seq);
CREATE INDEX vectors_by_change ON vectors (seq);

CREATE TABLE tea_deleted (
	feed text NOT NULL,
	seq bigint NOT NULL,
	space bytea NOT NULL,
	key bytea NOT NULL,
	deleted_at bigint NOT NULL,
	PRIMARY KEY (feed, seq)
);
CREATE INDEX tea_deleted_by_key ON tea_deleted (feed, substring(key FROM 1 FOR 1024));
-- The number up to which the tombstones of a feed were removed.
CREATE TABLE tea_forgotten (feed text PRIMARY KEY, seq bigint NOT NULL);
CREATE TABLE tea_identity (identity text NOT NULL);
INSERT INTO tea_identity VALUES (gen_random_uuid()::text);

CREATE FUNCTION tea_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE FUNCTION tea_ltm_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	NEW.seq := -nextval('ltm_changes');
	RETURN NEW;
END $$;
CREATE TRIGGER ltm_changed BEFORE UPDATE OF value, metadata, content_hash, created_at, updated_at, expires_at ON ltm
	FOR EACH ROW EXECUTE FUNCTION tea_ltm_changed();

-- tea.untracked is on where deletions leave no tombstones.
CREATE FUNCTION tea_ltm_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	IF coalesce(current_setting('tea.untracked', true), '') <> 'on' THEN
		INSERT INTO tea_deleted SELECT 'ltm', -nextval('ltm_changes'), convert_to(namespace, 'UTF8'), key, tea_now() FROM gone;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER ltm_deleted AFTER DELETE ON ltm REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tea_ltm_deleted();

CREATE FUNCTION tea_documents_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	count bigint := (SELECT count(*) FROM gone);
	last bigint;
BEGIN
	IF count > 0 THEN
		UPDATE tea_seq SET n = n + count WHERE name = 'documents' RETURNING n - count INTO last;
		INSERT INTO tea_deleted SELECT 'documents', last + row_number() OVER (), convert_to(kind, 'UTF8'), convert_to(id, 'UTF8'), tea_now() FROM gone;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER documents_deleted AFTER DELETE ON documents REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tea_documents_deleted();

CREATE FUNCTION tea_vectors_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	count bigint := (SELECT count(*) FROM gone);
	last bigint;
BEGIN
	IF count > 0 THEN
		UPDATE tea_seq SET n = n + count WHERE name = 'vectors' RETURNING n - count INTO last;
		INSERT INTO tea_deleted SELECT 'vectors', last + row_number() OVER (), collection, name, tea_now() FROM gone;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER vectors_deleted AFTER DELETE ON vectors REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tea_vectors_deleted();

CREATE FUNCTION tea_emptied() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	UPDATE tea_identity SET identity = gen_random_uuid()::text;
	DELETE FROM tea_deleted;
	DELETE FROM tea_forgotten;
	RETURN NULL;
END $$;
CREATE TRIGGER ltm_emptied AFTER TRUNCATE ON ltm FOR EACH STATEMENT EXECUTE FUNCTION tea_emptied();

-- tea_number assigns numbers to some of the changes of entries that have none, and
-- reports whether there can be more. Callers wait for each other; it does not wait
-- for writers of entries, whose rows get their numbers in a later call.
CREATE FUNCTION tea_number() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
	last bigint;
	first bigint;
	final bigint;
	waiting bigint;
	numbered bigint;
	gone bigint;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM ltm WHERE seq < 0) AND NOT EXISTS (SELECT 1 FROM tea_deleted WHERE feed = 'ltm' AND seq < 0) THEN
		RETURN false;
	END IF;
	SELECT n INTO last FROM tea_seq WHERE name = 'ltm' FOR UPDATE;
	SELECT min(-seq), max(-seq), count(*) INTO first, final, waiting FROM (SELECT seq FROM (
		(SELECT seq FROM ltm WHERE seq < 0 ORDER BY seq DESC LIMIT 10000)
		UNION ALL (SELECT seq FROM tea_deleted WHERE feed = 'ltm' AND seq < 0 ORDER BY seq DESC LIMIT 10000)
	) AS both_tables ORDER BY seq DESC LIMIT 10000) AS oldest;
	IF waiting = 0 THEN
		RETURN false;
	END IF;
	-- A row that is there was stored after its deletions.
	UPDATE tea_deleted SET seq = last - seq - first + 1 WHERE feed = 'ltm' AND seq BETWEEN -final AND -first;
	GET DIAGNOSTICS gone = ROW_COUNT;
	last := last + final - first + 1;
	UPDATE ltm SET seq = last - seq - first + 1
		WHERE hash IN (SELECT hash FROM ltm WHERE seq BETWEEN -final AND -first FOR UPDATE SKIP LOCKED) AND seq BETWEEN -final AND -first;
	GET DIAGNOSTICS numbered = ROW_COUNT;
	UPDATE tea_seq SET n = last + final - first + 1 WHERE name = 'ltm';
	RETURN waiting = 10000 AND numbered + gone > 0;
END $$;
