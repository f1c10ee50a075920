-- All rows have their columns: searches can use them.
ALTER TABLE vectors RENAME COLUMN unit_new TO unit;

CREATE OR REPLACE FUNCTION tea_derive() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	NEW.unit := tea_unit(NEW.embedding);
	NEW.facts := tea_facts(NEW.metadata);
	RETURN NEW;
END $$;
ALTER FUNCTION tea_derive() DEPENDS ON EXTENSION vector; -- which a replacement forgets
