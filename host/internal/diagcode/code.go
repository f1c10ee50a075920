package diagcode

// Code is a diagnostic code as it is printed, such as "TEA1203".
type Code = string

// Files and YAML.
const (
	FileUnreadable    Code = "TEA1001"
	NotText           Code = "TEA1002"
	FileTooLarge      Code = "TEA1003"
	FileEmpty         Code = "TEA1004"
	SeveralDocuments  Code = "TEA1005"
	Syntax            Code = "TEA1006"
	NestingTooDeep    Code = "TEA1007"
	AliasProblem      Code = "TEA1008"
	DuplicateKey      Code = "TEA1009"
	KeyNotText        Code = "TEA1010"
	NoJSONForm        Code = "TEA1011"
	BadMergeKey       Code = "TEA1012"
	BadDelete         Code = "TEA1013"
	DocumentNoMapping Code = "TEA1014"
)

// Keys and types of the workflow file.
const (
	UnknownKey       Code = "TEA1101"
	WrongType        Code = "TEA1102"
	MissingKey       Code = "TEA1103"
	ValueNotAllowed  Code = "TEA1104"
	NumberOutOfRange Code = "TEA1105"
	TwoSpellings     Code = "TEA1106"
	TwoBodies        Code = "TEA1107"
	KeysConflict     Code = "TEA1108"
	BadDuration      Code = "TEA1109"
	SchemaMismatch   Code = "TEA1110"
	UnknownNodeType  Code = "TEA1111"
	UnknownLanguage  Code = "TEA1112"
)

// The graph.
const (
	UnknownTarget      Code = "TEA1201"
	DuplicateNode      Code = "TEA1202"
	Unreachable        Code = "TEA1203"
	NoWayOut           Code = "TEA1204"
	FanInNotReached    Code = "TEA1205"
	ParallelWrites     Code = "TEA1206"
	NeverWritten       Code = "TEA1207"
	FallbackProblem    Code = "TEA1208"
	UnknownInterrupt   Code = "TEA1209"
	NodeNameNotAllowed Code = "TEA1210"
)

// Templates, conditions, Lua.
const (
	TemplateSyntax  Code = "TEA1301"
	ConditionSyntax Code = "TEA1302"
	LuaSyntax       Code = "TEA1303"
	UnknownRoot     Code = "TEA1304"
	StateAssignment Code = "TEA1305"
	UnknownGlobal   Code = "TEA1306"
	UnknownName     Code = "TEA1307"
	DollarKept      Code = "TEA1308"
)

// Actions and their parameters.
const (
	UnknownAction      Code = "TEA1401"
	MissingParameter   Code = "TEA1402"
	UnknownParameter   Code = "TEA1403"
	WrongParameterType Code = "TEA1404"
	UncheckedAction    Code = "TEA1405"
	MissingDirectory   Code = "TEA1406"
)

// Imports and subgraphs.
const (
	ImportNotFound     Code = "TEA1501"
	SubgraphUnreadable Code = "TEA1502"
	SubgraphCycle      Code = "TEA1503"
	NamespaceProblem   Code = "TEA1504"
	ModuleSchema       Code = "TEA1505"
)

// Settings and environment.
const (
	VariableMissing Code = "TEA1601"
	VariableSyntax  Code = "TEA1602"
	WrongSetting    Code = "TEA1603"
	UnknownSetting  Code = "TEA1604"
	UnreadSettings  Code = "TEA1605"
	SecretMissing   Code = "TEA1606"
)
