package compile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// validator knows the keywords that our schemas use and refuses all others.
type validator struct{ all map[string]schema }

// place is a schema and the file it stands in.
type place struct {
	file string
	s    schema
}

func (p place) child(key string) place {
	s, _ := p.s[key].(schema)
	return place{p.file, s}
}

func (v validator) follow(p place) place {
	for {
		ref, ok := p.s["$ref"].(string)
		if !ok {
			return p
		}
		file, path, _ := strings.Cut(ref, "#/")
		if file != "" {
			p.file = strings.TrimSuffix(file, ".schema.json")
		}
		p.s = v.all[p.file]
		for key := range strings.SplitSeq(path, "/") {
			p = p.child(key)
		}
		if p.s == nil {
			panic("dangling $ref " + ref)
		}
	}
}

func (v validator) check(p place, value any) error {
	p = v.follow(p)
	for keyword, arg := range p.s {
		if err := v.keyword(p, keyword, arg, value); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) keyword(p place, keyword string, arg, value any) error {
	object, _ := value.(schema)
	array, _ := value.([]any)
	text, _ := value.(string)
	number, _ := value.(float64)
	ok := true
	switch keyword {
	case "$schema", "$defs", "title", "description":
	case "type":
		ok = arg == typeName(value)
	case "const":
		ok = arg == value
	case "enum":
		ok = slices.Contains(arg.([]any), value)
	case "pattern":
		ok = regexp.MustCompile(arg.(string)).MatchString(text)
	case "minimum":
		ok = number >= arg.(float64)
	case "minItems":
		ok = len(array) >= int(arg.(float64))
	case "minProperties":
		ok = len(object) >= int(arg.(float64))
	case "required":
		for _, key := range stringList(arg) {
			if _, found := object[key]; !found {
				return fmt.Errorf("no %s", key)
			}
		}
	case "items":
		for i, e := range array {
			if err := v.check(p.child(keyword), e); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case "properties":
		for key, e := range object {
			if c := p.child(keyword).child(key); c.s != nil {
				if err := v.check(c, e); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		}
	case "additionalProperties":
		for key, e := range object {
			if p.child("properties").child(key).s != nil {
				continue
			}
			if arg == false {
				return fmt.Errorf("unknown attribute %s", key)
			}
			if err := v.check(p.child(keyword), e); err != nil {
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
	case schema:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
	}
	return fmt.Sprintf("%T", v)
}

func stringList(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.(string)
	}
	return out
}
