package kit

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Validator checks values against JSON schemas. The keys of All are the names of schema files,
// without the suffix .schema.json. If a schema uses a keyword that no schema of this repository
// uses, Check returns an error.
type Validator struct{ All map[string]Schema }

// Schema is a decoded JSON schema.
type Schema = map[string]any

// Place is a JSON schema, or a part of one, together with the name of the file that contains it.
type Place struct {
	File   string
	Schema Schema
}

// Child returns the part of a schema that is the value of a keyword. If the schema does not have
// the keyword, Child returns the zero Schema.
func (p Place) Child(key string) Place {
	s, _ := p.Schema[key].(Schema)
	return Place{p.File, s}
}

// Follow returns the schema to which a reference ($ref) leads. If there is no reference at p,
// Follow returns p.
func (v Validator) Follow(p Place) Place {
	for {
		ref, ok := p.Schema["$ref"].(string)
		if !ok {
			return p
		}
		file, path, _ := strings.Cut(ref, "#/")
		if file != "" {
			p.File = strings.TrimSuffix(file, ".schema.json")
		}
		p.Schema = v.All[p.File]
		for key := range strings.SplitSeq(path, "/") {
			p = p.Child(key)
		}
		if p.Schema == nil {
			panic("dangling $ref " + ref)
		}
	}
}

// Check returns an error unless the value matches the schema at p. The value must be one that
// encoding/json decodes, such as a map[string]any.
func (v Validator) Check(p Place, value any) error {
	p = v.Follow(p)
	for keyword, arg := range p.Schema {
		if err := v.keyword(p, keyword, arg, value); err != nil {
			return err
		}
	}
	return nil
}

func (v Validator) keyword(p Place, keyword string, arg, value any) error {
	object, _ := value.(Schema)
	array, _ := value.([]any)
	text, _ := value.(string)
	number, _ := value.(float64)
	ok := true
	switch keyword {
	case "$schema", "$defs", "title", "description", "since", "format", "default", "examples":
	case "type":
		ok = arg == typeName(value)
	case "const":
		ok = arg == value
	case "enum":
		ok = slices.Contains(arg.([]any), value)
	case "pattern":
		ok = regexp.MustCompile(arg.(string)).MatchString(text)
	case "maxLength":
		ok = utf8.RuneCountInString(text) <= int(arg.(float64))
	case "anyOf":
		ok = slices.ContainsFunc(arg.([]any), func(s any) bool { return v.Check(Place{p.File, s.(Schema)}, value) == nil })
	case "minimum":
		ok = number >= arg.(float64)
	case "maximum":
		ok = number <= arg.(float64)
	case "minItems":
		ok = len(array) >= int(arg.(float64))
	case "maxItems":
		ok = len(array) <= int(arg.(float64))
	case "minProperties":
		ok = len(object) >= int(arg.(float64))
	case "propertyNames":
		for key := range object {
			if err := v.Check(p.Child(keyword), key); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	case "required":
		for _, key := range Strings(arg) {
			if _, found := object[key]; !found {
				return fmt.Errorf("no %s", key)
			}
		}
	case "items":
		for i, e := range array {
			if err := v.Check(p.Child(keyword), e); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case "properties":
		for key, e := range object {
			if c := p.Child(keyword).Child(key); c.Schema != nil {
				if err := v.Check(c, e); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		}
	case "additionalProperties":
		for key, e := range object {
			if p.Child("properties").Child(key).Schema != nil {
				continue
			}
			if arg == false {
				return fmt.Errorf("unknown attribute %s", key)
			}
			if err := v.Check(p.Child(keyword), e); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	default:
		return fmt.Errorf("keyword %s: not known here", keyword)
	}
	if !ok {
		return fmt.Errorf("%s %v: found %v", keyword, arg, value)
	}
	return nil
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case Schema:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
	}
	return fmt.Sprintf("%T", v)
}

// Strings converts a list of strings, which encoding/json decodes as []any, to a []string. If an
// item is not a string, it panics.
func Strings(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.(string)
	}
	return out
}
