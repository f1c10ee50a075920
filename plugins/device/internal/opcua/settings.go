package opcua

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	settingsKey = "opcua"
	serversPath = "settings.opcua.servers"
	nodesPath   = "settings.opcua.nodes"
	methodsPath = "settings.opcua.methods"
)

// Settings are the settings under settings.opcua.
type Settings struct {
	Servers map[string]Server `json:"servers,omitempty" doc:"the OPC UA servers by name"`
	Nodes   map[string]Node   `json:"nodes,omitempty" doc:"named nodes; only those with write can be written"`
	Methods map[string]Method `json:"methods,omitempty" doc:"the methods that can be called, by name"`
}

// Server is an OPC UA server.
type Server struct {
	URL            string  `json:"url" pattern:"^opc[.]tcp://([^\\]\\[/?#@: ]+|\\[[^\\]\\[/?#@ ]+\\])(:[0-9]{1,5})?(/.*)?$" doc:"opc.tcp://HOST:PORT/PATH, with username and password in their own keys"`
	SecurityPolicy string  `json:"security_policy,omitempty" enum:"None,Basic256Sha256,Aes128Sha256RsaOaep,Aes256Sha256RsaPss" default:"None" doc:"how messages are protected"`
	SecurityMode   string  `json:"security_mode,omitempty" enum:"sign,sign_and_encrypt" default:"sign_and_encrypt" doc:"whether messages are also encrypted, with a policy other than None"`
	CertFile       string  `json:"cert_file,omitempty" format:"path" doc:"file with the certificate of this client in PEM format"`
	KeyFile        string  `json:"key_file,omitempty" format:"path" doc:"file with its RSA key in PEM format"`
	ServerCertFile string  `json:"server_cert_file,omitempty" format:"path" doc:"file with the certificate of the server, in PEM or DER format"`
	Username       string  `json:"username,omitempty" doc:"name of the user"`
	Password       string  `json:"password,omitempty" secret:"true" doc:"password"`
	UserCertFile   string  `json:"user_cert_file,omitempty" format:"path" doc:"file with the certificate of the user in PEM format, instead of username"`
	UserKeyFile    string  `json:"user_key_file,omitempty" format:"path" doc:"file with its RSA key in PEM format"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"10" minimum:"0.05" maximum:"600" doc:"limit for connecting, and for an answer"`
}

// JSONSchema returns the schema, which requires the certificates that are used.
func (Server) JSONSchema() *schema.Schema {
	type plain Server
	return schema.With[plain](`{
		"if": {"properties": {"security_policy": {"enum": ["None"]}}},
		"then": {"properties": {"cert_file": false, "key_file": false, "server_cert_file": false, "user_cert_file": false}},
		"else": {"required": ["cert_file", "key_file", "server_cert_file"]},
		"dependentRequired": {"user_cert_file": ["user_key_file"], "user_key_file": ["user_cert_file"]},
		"allOf": [{"if": {"required": ["user_cert_file"]}, "then": {"properties": {"username": false, "password": false}}}]}`)
}

// Node is a named node.
type Node struct {
	Server string      `json:"server,omitempty" keyOf:"/servers" doc:"name of the server in settings.opcua.servers; can be left out if there is one"`
	ID     string      `json:"id" pattern:"^((ns=[0-9]{1,5}|nsu=[^;]+);)?(i=[0-9]{1,10}$|s=.|g=[0-9a-fA-F-]{36}$|b=[A-Za-z0-9+/]+=*$)" doc:"identifier, such as ns=2;s=Pump.Speed or nsu=urn:plant;i=7"`
	Type   string      `json:"type,omitempty" enum:"boolean,sbyte,byte,int16,uint16,int32,uint32,int64,uint64,float,double,string,datetime,guid,bytestring,localizedtext" doc:"type of a value to write; default: what the server says"`
	Write  *guard.Rule `json:"write,omitempty" doc:"allows opcua.write and limits it; {} allows any value"`
}

// Method is a method that workflows can call.
type Method struct {
	Server string  `json:"server,omitempty" keyOf:"/servers" doc:"name of the server in settings.opcua.servers; can be left out if there is one"`
	Object string  `json:"object" pattern:"^((ns=[0-9]{1,5}|nsu=[^;]+);)?(i=[0-9]{1,10}$|s=.|g=[0-9a-fA-F-]{36}$|b=[A-Za-z0-9+/]+=*$)" doc:"identifier of the object that has the method, such as ns=2;s=Tank"`
	Method string  `json:"method" pattern:"^((ns=[0-9]{1,5}|nsu=[^;]+);)?(i=[0-9]{1,10}$|s=.|g=[0-9a-fA-F-]{36}$|b=[A-Za-z0-9+/]+=*$)" doc:"identifier of the method, such as ns=2;s=Tank.Fill"`
	Inputs []Input `json:"inputs,omitempty" doc:"its arguments"`
	guard.Limits
}

// Input is an argument of a method.
type Input struct {
	Type string   `json:"type" enum:"boolean,sbyte,byte,int16,uint16,int32,uint32,int64,uint64,float,double,string,datetime,guid,bytestring,localizedtext" doc:"type of the argument, or of its elements"`
	List bool     `json:"list,omitempty" doc:"whether it is a list"`
	Min  *float64 `json:"min,omitempty" atMost:"max" doc:"smallest number"`
	Max  *float64 `json:"max,omitempty" doc:"largest number"`
	Enum []string `json:"enum,omitempty" doc:"the texts that are allowed; default: all"`
}

// Check returns a mistake in the settings that the schema cannot express.
func (s Settings) Check() error {
	return cmp.Or(
		part.Check(serversPath, s.Servers, func(_ string, server Server) error {
			_, err := part.Address(server.URL, "opc.tcp://192.0.2.7:4840", map[string]string{"opc.tcp": "4840"})
			return err
		}),
		part.Check(nodesPath, s.Nodes, func(_ string, n Node) error { return s.checkIDs(n.Server, n.ID) }),
		part.Check(methodsPath, s.Methods, func(_ string, m Method) error {
			return s.checkIDs(m.Server, m.Object, m.Method)
		}),
	)
}

func (s Settings) checkIDs(server string, ids ...string) error {
	if _, err := part.Name(serversPath, "server", s.Servers, server); err != nil {
		return errors.New(tea.AsError(err).Message)
	}
	for _, id := range ids {
		if strings.HasPrefix(id, "nsu=") { // only the server knows the number
			continue
		}
		if _, err := parseID(id, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s Server) secure() bool { return s.SecurityPolicy != "" && s.SecurityPolicy != "None" }

func (s Server) timeout() time.Duration { return part.Seconds(s.TimeoutSeconds) }

// parseID returns an identifier of a node. namespaces are those of the server.
func parseID(id string, namespaces []string) (*ua.NodeID, error) {
	expanded, err := ua.ParseExpandedNodeID(id, namespaces)
	if err != nil || !strings.Contains(id, "=") {
		return nil, fmt.Errorf("%q is not an identifier of a node such as ns=2;s=Pump.Speed, or has an unknown namespace", id)
	}
	return ua.NewNodeIDFromExpandedNodeID(expanded), nil
}

// arguments returns the arguments for a call of the method.
func (m Method) arguments(given []any) ([]*ua.Variant, error) {
	if len(given) != len(m.Inputs) {
		return nil, fmt.Errorf("it has %d arguments, got %d", len(m.Inputs), len(given))
	}
	out := []*ua.Variant{}
	for i, in := range m.Inputs {
		rank := rankScalar
		if in.List {
			rank = rankList
		}
		argument, err := encode(typeNamed(in.Type), rank, given[i])
		if err == nil {
			err = in.allows(given[i])
		}
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out = append(out, argument)
	}
	return out, nil
}

// allows returns an error for an argument beyond its limits.
func (in Input) allows(v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		n, number := guard.Number(v)
		text, isText := v.(string)
		switch {
		case (in.Min != nil || in.Max != nil) && !number:
			return fmt.Errorf("%s is not a number", value.Brief(v))
		case in.Min != nil && n < *in.Min:
			return guard.Limit("%s is less than the minimum %v", value.Brief(v), *in.Min)
		case in.Max != nil && n > *in.Max:
			return guard.Limit("%s is more than the maximum %v", value.Brief(v), *in.Max)
		case in.Enum != nil && !(isText && slices.Contains(in.Enum, text)):
			return guard.Limit("%s is not one of %s", value.Brief(v), strings.Join(in.Enum, ", "))
		}
	}
	return nil
}
