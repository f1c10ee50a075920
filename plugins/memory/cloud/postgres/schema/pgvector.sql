-- What searches of vectors need where the extension vector is installed, in the
-- schema {extension}. A trigger derives both columns, so devices without it, and those
-- with older versions of the plugin, write as before. The columns are added empty:
-- generated ones would rewrite a large table while nobody can read it. The rows
-- that are there are filled in steps; until then the column unit is called unit_new.

-- tea_unit returns an embedding, 32-bit floats in little-endian order, as a vector of
-- length 1; NULL if it is damaged or has more dimensions than the type. A user who
-- stores vectors needs no right to the extension.
CREATE OR REPLACE FUNCTION tea_unit(embedding bytea) RETURNS {extension}.vector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	dimension integer := octet_length(embedding) / 4;
	numbers float8[] := array_fill(0::float8, ARRAY[dimension]);
	high integer; -- sign, exponent and the first 7 bits of the fraction
	result {extension}.vector;
BEGIN
	IF octet_length(embedding) % 4 <> 0 OR dimension NOT BETWEEN 1 AND 16000 THEN
		RETURN NULL;
	END IF;
	FOR i IN 0..dimension - 1 LOOP
		high := get_byte(embedding, 4 * i + 2) | (get_byte(embedding, 4 * i + 3) << 8);
		IF high & 32640 = 32640 THEN -- infinite, or not a number
			RETURN NULL;
		END IF;
		numbers[i + 1] := (CASE WHEN high & 32640 = 0 THEN 0 ELSE 8388608 END + (((high & 127) << 16) | (get_byte(embedding, 4 * i + 1) << 8) | get_byte(embedding, 4 * i)))
			* 2.0::float8 ^ (greatest((high & 32640) >> 7, 1) - 150) * CASE WHEN high >= 32768 THEN -1 ELSE 1 END;
	END LOOP;
	result := {extension}.l2_normalize(numbers::{extension}.vector);
	IF {extension}.vector_norm(result) = 0 THEN
		RETURN NULL;
	END IF;
	RETURN result;
END $$;

-- tea_facts returns metadata as jsonb, NULL if it cannot: jsonb has no \u0000.
CREATE OR REPLACE FUNCTION tea_facts(metadata text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN metadata::jsonb;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END $$;

ALTER TABLE vectors
	ADD COLUMN IF NOT EXISTS unit_new {extension}.vector,
	ADD COLUMN IF NOT EXISTS facts jsonb,
	ALTER COLUMN unit_new SET STORAGE MAIN; -- in the row: a comparison reads nothing else

CREATE OR REPLACE FUNCTION tea_derive() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	NEW.unit_new := tea_unit(NEW.embedding);
	NEW.facts := tea_facts(NEW.metadata);
	RETURN NEW;
END $$;
-- The trigger goes with the extension, or all writes would fail without it.
ALTER FUNCTION tea_derive() DEPENDS ON EXTENSION vector;
DROP TRIGGER IF EXISTS vectors_derived ON vectors;
CREATE TRIGGER vectors_derived BEFORE INSERT OR UPDATE OF embedding, metadata ON vectors FOR EACH ROW EXECUTE FUNCTION tea_derive();
