-- Tombstones have the keys of entries. Those of other feeds are not for roles with
-- namespaces. Triggers add them as the owner.
ALTER TABLE tea_deleted ENABLE ROW LEVEL SECURITY;
CREATE POLICY tea_namespaces ON tea_deleted USING (feed = 'ltm' AND convert_from(space, 'UTF8') IN (SELECT namespace FROM tea_access));
