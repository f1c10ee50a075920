package diagcode

import "slices"

// Info describes a code.
type Info struct {
	Code  Code
	Title string
}

// All returns every code in order. The caller owns the slice.
func All() []Info { return slices.Clone(table) }

// Title returns the title of a code, or "" for an unknown code.
func Title(code Code) string {
	for _, info := range table {
		if info.Code == code {
			return info.Title
		}
	}
	return ""
}

var table = []Info{
	{FileUnreadable, "The file cannot be read"},
	{NotText, "The file is not plain UTF-8 text"},
	{FileTooLarge, "The file is too large"},
	{FileEmpty, "The file is empty"},
	{SeveralDocuments, "The file contains several YAML documents"},
	{Syntax, "YAML syntax error"},
	{NestingTooDeep, "Values are nested too deeply"},
	{AliasProblem, "An alias is unknown, refers to itself or expands to too much"},
	{DuplicateKey, "Duplicate key in a mapping"},
	{KeyNotText, "A key is not text"},
	{NoJSONForm, "A value cannot be represented in JSON"},
	{BadMergeKey, "A merge key has nothing to merge"},
	{BadDelete, "Invalid deletion in an overlay"},
	{DocumentNoMapping, "The document is not a mapping"},

	{UnknownKey, "Unknown key"},
	{WrongType, "Wrong type of value"},
	{MissingKey, "A required key is missing"},
	{ValueNotAllowed, "A value is not allowed here"},
	{NumberOutOfRange, "A number is out of range"},
	{TwoSpellings, "One key has two spellings"},
	{TwoBodies, "A node has two bodies"},
	{KeysConflict, "Keys exclude or need each other"},
	{BadDuration, "Not a duration"},
	{SchemaMismatch, "A value does not match its state_schema entry"},
	{UnknownNodeType, "Unknown type of node"},
	{UnknownLanguage, "Unknown script language"},

	{UnknownTarget, "Unknown target"},
	{DuplicateNode, "Duplicate node name"},
	{Unreachable, "A node cannot be reached"},
	{NoWayOut, "A node can have no way out"},
	{FanInNotReached, "A branch does not reach the fan-in node"},
	{ParallelWrites, "Parallel branches write one key without a reducer"},
	{NeverWritten, "A state key is read but never written"},
	{FallbackProblem, "Invalid fallback"},
	{UnknownInterrupt, "An interrupt names an unknown node"},
	{NodeNameNotAllowed, "A node name is reserved or invalid"},

	{TemplateSyntax, "Template syntax error"},
	{ConditionSyntax, "A condition is neither Lua nor Jinja"},
	{LuaSyntax, "Lua syntax error"},
	{UnknownRoot, "Unknown template root"},
	{StateAssignment, "Assigning to state has no effect in Lua"},
	{UnknownGlobal, "Unknown name in Lua code"},
	{UnknownName, "A variable, setting or node does not exist"},

	{UnknownAction, "Unknown action"},
	{MissingParameter, "An action's parameter is missing"},
	{UnknownParameter, "Unknown parameter of an action"},
	{WrongParameterType, "A parameter has the wrong type"},
	{UncheckedAction, "An action cannot be checked"},
	{MissingDirectory, "The directory of a file does not exist"},

	{ImportNotFound, "An import cannot be read"},
	{SubgraphUnreadable, "A subgraph cannot be read"},
	{SubgraphCycle, "Subgraphs contain each other"},
	{NamespaceProblem, "A namespace is invalid"},
	{ModuleSchema, "A Lua module has an invalid schema"},

	{VariableMissing, "An environment variable is not set"},
	{VariableSyntax, "A ${...} in settings is malformed"},
	{WrongSetting, "Invalid setting"},
	{UnknownSetting, "Unknown setting"},
	{UnreadSettings, "Nothing reads these settings"},
	{SecretMissing, "A secret is missing"},
}
