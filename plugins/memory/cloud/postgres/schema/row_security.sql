-- The namespaces of roles, which only the owner of the tables changes.
CREATE TABLE tea_access (role name NOT NULL, namespace text COLLATE "C" NOT NULL, PRIMARY KEY (role, namespace));
ALTER TABLE tea_access ENABLE ROW LEVEL SECURITY;
CREATE POLICY tea_own ON tea_access FOR SELECT USING (EXISTS (SELECT 1 FROM pg_roles WHERE rolname = role AND pg_has_role(oid, 'MEMBER')));

ALTER TABLE ltm ENABLE ROW LEVEL SECURITY;
CREATE POLICY tea_namespaces ON ltm USING (namespace IN (SELECT namespace FROM tea_access));

-- The id of a recent write stays, so that the write is not done again.
ALTER TABLE tea_writes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tea_read ON tea_writes FOR SELECT USING (true);
CREATE POLICY tea_add ON tea_writes FOR INSERT WITH CHECK (true);
CREATE POLICY tea_clean ON tea_writes FOR DELETE USING (at < now() - interval '1 day');
