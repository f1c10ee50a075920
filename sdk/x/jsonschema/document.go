package jsonschema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// shape is the form of a keyword with subschemas.
type shape int

const (
	oneSchema shape = iota
	schemaList
	schemaMap
	schemaOrList
)

// applicators are the keywords with subschemas, in both drafts.
func applicators() map[string]shape {
	return map[string]shape{
		"$defs": schemaMap, "definitions": schemaMap,
		"properties": schemaMap, "patternProperties": schemaMap, "dependentSchemas": schemaMap, "dependencies": schemaMap,
		"additionalProperties": oneSchema, "propertyNames": oneSchema, "unevaluatedProperties": oneSchema,
		"items": schemaOrList, "prefixItems": schemaList, "additionalItems": oneSchema, "contains": oneSchema, "unevaluatedItems": oneSchema,
		"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList,
		"not": oneSchema, "if": oneSchema, "then": oneSchema, "else": oneSchema,
	}
}

// plainKeywords are the supported keywords without subschemas, including
// annotations.
func plainKeywords() []string {
	return []string{
		"$schema", "$id", "$anchor", "$dynamicAnchor", "$ref", "$dynamicRef", "$comment",
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
		"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "format", "required", "minProperties", "maxProperties", "dependentRequired",
		"minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
	}
}

// CheckKeywords reports the first keyword in a schema and its subschemas that this package
// does not support, and that [Compile] ignores, as JSON Schema requires. Keywords that begin
// with x- are annotations. The error is an [*Error].
func CheckKeywords(schema any) (err error) {
	defer catch(&err)
	checkKeywords(schema, "", 0)
	return nil
}

func checkKeywords(schema any, pointer string, depth int) {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxDepth {
		return
	}
	withSchemas, plain := applicators(), plainKeywords()
	for _, keyword := range sortedKeys(m) {
		shape, ok := withSchemas[keyword]
		at := pointer + "/" + escape(keyword)
		if !ok {
			if !slices.Contains(plain, keyword) && !strings.HasPrefix(keyword, "x-") {
				hint := diag.Suggest(keyword, append(sortedKeys(withSchemas), plain...))
				panic(&Error{Path: pathOf(pointer), Message: withHint(fmt.Sprintf("the keyword %q is not supported", keyword), hint)})
			}
			continue
		}
		eachSubschema(m[keyword], shape, at, func(sub any, at string) { checkKeywords(sub, at, depth+1) })
	}
}

// eachSubschema calls visit for the subschemas of a keyword.
func eachSubschema(held any, s shape, at string, visit func(sub any, at string)) {
	switch sub := held.(type) {
	case []any:
		if s != schemaList && s != schemaOrList {
			return
		}
		for i, e := range sub {
			visit(e, at+"/"+strconv.Itoa(i))
		}
	case map[string]any:
		if s != schemaMap {
			visit(sub, at)
			return
		}
		for _, name := range sortedKeys(sub) {
			visit(sub[name], at+"/"+escape(name))
		}
	}
}

// documentURI is the base of a document without an $id.
const documentURI = "tea://document/"

// maxDepth bounds the nesting of subschemas.
const maxDepth = 256

// document is the raw schema with an index of its $id and anchors. Places in it are JSON
// pointers from the root.
type document struct {
	root      any
	draft7    bool
	resources map[string]*resource // by pointer
	uris      map[string]string    // absolute URI, with "#anchor" for an anchor, to pointer
	dynamics  map[string]string    // pointer to $dynamicAnchor
	shapes    map[string]shape
}

func newDocument(root any) *document {
	d := &document{
		root: root, resources: map[string]*resource{}, uris: map[string]string{}, dynamics: map[string]string{}, shapes: applicators(),
	}
	if m, ok := root.(map[string]any); ok {
		d.readDraft(m)
	}
	d.addResource("", documentURI)
	d.index(root, "", documentURI, 0)
	return d
}

func (d *document) readDraft(root map[string]any) {
	given, ok := root["$schema"]
	if !ok {
		return
	}
	name, _ := given.(string)
	switch strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), "#") {
	case "json-schema.org/draft/2020-12/schema":
	case "json-schema.org/draft-07/schema":
		d.draft7 = true
	default:
		panic(&Error{Path: diag.Key("", "$schema"), Message: fmt.Sprintf("%s is not supported; use draft 2020-12 or 7", quote(given))})
	}
}

func (d *document) addResource(pointer, uri string) {
	d.resources[pointer] = &resource{uri: uri, dynamic: map[string]*node{}}
	d.uris[uri] = pointer
}

// index indexes the $id and anchors of raw and of the subschemas below it.
func (d *document) index(raw any, pointer, base string, depth int) {
	m, ok := raw.(map[string]any)
	if !ok {
		return
	}
	if depth > maxDepth {
		panic(&Error{Path: pathOf(pointer), Message: fmt.Sprintf("subschemas nest deeper than %d", maxDepth)})
	}
	base = d.indexNames(m, pointer, base)
	for _, keyword := range sortedKeys(m) {
		if shape, ok := d.shapes[keyword]; ok {
			at := pointer + "/" + escape(keyword)
			eachSubschema(m[keyword], shape, at, func(sub any, at string) { d.index(sub, at, base, depth+1) })
		}
	}
}

// indexNames indexes the names that m declares and returns the base URI inside m.
func (d *document) indexNames(m map[string]any, pointer, base string) string {
	_, hasRef := m["$ref"]
	id, ok := m["$id"].(string)
	if ok && !(d.draft7 && hasRef) {
		uri, fragment, err := resolve(base, id)
		if err != nil {
			panic(&Error{Path: diag.Key(pathOf(pointer), "$id"), Message: err.Error()})
		}
		if strings.HasPrefix(id, "#") {
			d.uris[uri+"#"+fragment] = pointer
		} else {
			base = uri
			d.addResource(pointer, uri)
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		name, ok := m[keyword].(string)
		if !ok {
			continue
		}
		d.uris[base+"#"+name] = pointer
		if keyword == "$dynamicAnchor" {
			d.dynamics[pointer] = name
		}
	}
	return base
}

// find resolves a reference in a resource to a place in the document.
func (d *document) find(from *resource, ref string) (pointer, fragment string, err error) {
	uri, fragment, err := resolve(from.uri, ref)
	if err != nil {
		return "", "", err
	}
	outside := fmt.Errorf("%q does not lead to a place in this document; nothing outside is loaded", ref)
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		pointer, ok := d.uris[uri+"#"+fragment]
		if !ok {
			return "", "", outside
		}
		return pointer, fragment, nil
	}
	root, ok := d.uris[uri]
	if !ok {
		return "", "", outside
	}
	return root + fragment, "", nil
}

// at returns the schema at a pointer, and the resource to which it belongs.
func (d *document) at(pointer string) (raw any, res *resource, ok bool) {
	raw, res = d.root, d.resources[""]
	walked := ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		switch v := raw.(type) {
		case map[string]any:
			raw, ok = v[unescape(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(v); ok {
				raw = v[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, nil, false
		}
		walked += "/" + token
		if inner := d.resources[walked]; inner != nil {
			res = inner
		}
	}
	return raw, res, true
}

func resolve(base, ref string) (uri, fragment string, err error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", "", fmt.Errorf("%q is not a URI", base)
	}
	r, err := url.Parse(ref)
	if err != nil {
		return "", "", fmt.Errorf("%q is not a URI reference", ref)
	}
	u := b.ResolveReference(r)
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	return u.String(), fragment, nil
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
