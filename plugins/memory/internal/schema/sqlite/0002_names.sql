-- Keys that begin with the last code point of Unicode, from before there were
-- namespaces: such a key now follows an empty namespace (see package longterm).
UPDATE ltm SET key = char(1114111) || char(1) || key WHERE key >= char(1114111) AND instr(key, char(1)) = 0;
