package diagcode

import "slices"

// Info says what a code is about.
type Info struct {
	Code  Code
	Title string
}

// All lists every code in order. The caller owns the slice.
func All() []Info { return slices.Clone(table) }

// Title is the title of a code, "" where there is no such code.
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
	{SeveralDocuments, "The file holds several YAML documents"},
	{Syntax, "YAML syntax error"},
	{NestingTooDeep, "Values are nested too deeply"},
	{AliasProblem, "An alias is unknown, refers to itself or expands to too much"},
	{DuplicateKey, "A key stands twice in one mapping"},
	{KeyNotText, "A key is not text"},
	{NoJSONForm, "A value has no JSON form"},
	{BadMergeKey, "A merge key has nothing to merge"},
	{BadDelete, "A deletion in an overlay makes no sense"},
	{DocumentNoMapping, "The document is not a mapping"},

	{UnknownKey, "Unknown key"},
	{WrongType, "Wrong type of value"},
	{MissingKey, "A required key is missing"},
	{ValueNotAllowed, "A value that is not allowed here"},
	{NumberOutOfRange, "A number is out of range"},
	{TwoSpellings, "One key is given under two spellings"},
	{TwoBodies, "A node has two bodies"},
	{KeysConflict, "Keys that exclude or need each other"},
	{BadDuration, "Not a duration"},
	{SchemaMismatch, "A value does not match its state_schema entry"},
	{UnknownNodeType, "Unknown type of node"},
	{UnknownLanguage, "Unknown script language"},

	{UnknownTarget, "Unknown target"},
	{DuplicateNode, "Two nodes have one name"},
	{Unreachable, "A node cannot be reached"},
	{NoWayOut, "A node may have no way out"},
	{FanInNotReached, "A branch does not reach the fan-in node"},
	{ParallelWrites, "Parallel branches write one key without a reducer"},
	{NeverWritten, "A state key is read but never written"},
	{FallbackProblem, "A fallback or goto that cannot work"},
	{UnknownInterrupt, "An interrupt names an unknown node"},
	{NodeNameNotAllowed, "A node's name is reserved or invalid"},

	{TemplateSyntax, "Template syntax error"},
	{ConditionSyntax, "A condition is neither Lua nor Jinja"},
	{LuaSyntax, "Lua syntax error"},
	{UnknownRoot, "Unknown template root"},
	{StateAssignment, "Assigning to state has no effect in Lua"},
	{UnknownGlobal, "Unknown name in Lua code"},
	{UnknownName, "A variable, setting or node does not exist"},

	{UnknownAction, "Unknown action"},
	{MissingParameter, "An action's parameter is missing"},
	{UnknownParameter, "An action has no such parameter"},
	{WrongParameterType, "A parameter has the wrong type"},
	{UncheckedAction, "An action cannot be checked"},

	{ImportNotFound, "An import cannot be read"},
	{SubgraphUnreadable, "A subgraph cannot be read"},
	{SubgraphCycle, "Subgraphs contain each other"},
	{NamespaceProblem, "A namespace is invalid"},
	{ModuleSchema, "A Lua module has an invalid schema"},

	{VariableMissing, "An environment variable is not set"},
	{VariableSyntax, "A ${...} in settings is malformed"},
	{WrongSetting, "A setting does not fit"},
	{UnknownSetting, "There is no such setting"},
	{UnreadSettings, "Nothing reads these settings"},
	{SecretMissing, "A secret is not given"},
}
