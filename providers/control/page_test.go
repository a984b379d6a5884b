package control_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the page of the API")

// page is rendered from the API's description.
const page = "../../docs/reference/control-api.md"

const intro = `# Operators' API

This page is for those who write programs that act on a cluster as operators do. ` + "`florctl`" + ` uses
this API and nothing else.

<!-- Rendered from providers/control/openapi.json: go test ./providers/control -run TestPage -update -->

Each provider of documents serves it as the service ` + "`florete-control`" + ` of its host, through the
forwarder:

` + "```console" + `
$ curl http://florete-control.drhorrible.demo.flor.rete/v1/openapi.json
` + "```" + `

- **Access** is given in the flake. A role with the group ` + "`control-plane`" + ` reads, one with
  ` + "`control-plane-write`" + ` also changes. The provider reads its policy anew for each request.
- **The caller** is the SPIFFE ID of the connection. A request has no credentials. The provider accepts
  connections of the forwarder's account alone, and refuses requests from web pages of another origin.
- **Every change** is one transaction with a row of the audit log, which has the state before and after.
- **Several providers of documents** without a shared store each have what was published to them.
  ` + "`florctl`" + ` publishes to all.
- **Answers** may have more attributes in later releases.
- **Refusals** have the form of [Refusal](#refusal); [Errors](errors.md) lists the codes.
- **Before there is an operator**, root of the provider host calls it with ` + "`flor-provider control`" + `,
  and ` + "`florctl --via ssh`" + ` does so from afar.
- **Endpoints of other kinds:** the process of kind ` + "`file`, `secret`, `tls` or `token`" + ` on the same host
  answers ` + "`/v1/files`, `/v1/secrets`, `/v1/tls` and `/v1/tenants`" + `, with a row in its own audit log.
- **Limits:** a published version has at most 1 GiB. A caller that stalls for 20 seconds is cut off.
`

// TestPage checks that the page agrees with the API's description.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	want := render(t, b)
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what openapi.json says, want it rendered: go test ./providers/control -run TestPage -update", page)
	}
}

// property is a schema of OpenAPI, as far as it is rendered.
type property struct {
	Ref         string          `json:"$ref"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Items       *property       `json:"items"`
	Others      json.RawMessage `json:"additionalProperties"`
	Required    []string        `json:"required"`
	Properties  json.RawMessage `json:"properties"`
	Enum        []string        `json:"enum"`
	Minimum     *int            `json:"minimum"`
	Maximum     *int            `json:"maximum"`
	Default     any             `json:"default"`
}

type content struct {
	Ref         string                               `json:"$ref"`
	Description string                               `json:"description"`
	Content     map[string]struct{ Schema property } `json:"content"`
}

type parameter struct {
	Ref, Name, In, Description string
	Required                   bool
	Schema                     property
}

type operation struct {
	Summary, Description string
	Parameters           []json.RawMessage
	RequestBody          *content
	Responses            map[string]content
}

type member struct {
	name  string
	value json.RawMessage
}

// renderer has the description of an API.
type renderer struct {
	*testing.T
	out        bytes.Buffer
	components struct {
		Parameters    map[string]parameter
		RequestBodies map[string]content
		Responses     map[string]content
		Schemas       json.RawMessage
	}
}

func render(t *testing.T, doc []byte) []byte {
	r := &renderer{T: t}
	var parts struct{ Paths, Components json.RawMessage }
	r.read(doc, &parts)
	r.read(parts.Components, &r.components)
	r.out.WriteString(intro + "\n## Endpoints\n\n| endpoint | does |\n| --- | --- |\n")
	var all []member
	for _, path := range r.members(parts.Paths) {
		for _, op := range r.members(path.value) {
			all = append(all, member{strings.ToUpper(op.name) + " " + path.name, op.value})
		}
	}
	for _, m := range all {
		var op operation
		r.read(m.value, &op)
		fmt.Fprintf(&r.out, "| `%s` | %s |\n", m.name, op.Summary)
	}
	for _, m := range all {
		var op operation
		r.read(m.value, &op)
		r.operation(m.name, op)
	}
	r.out.WriteString("\n## Types\n")
	for _, m := range r.members(r.components.Schemas) {
		var p property
		r.read(m.value, &p)
		r.schema(m.name, p)
	}
	return r.out.Bytes()
}

func (r *renderer) read(b []byte, to any) {
	r.Helper()
	if err := json.Unmarshal(b, to); err != nil {
		r.Fatal(err)
	}
}

// members returns those of a JSON object, in their order.
func (r *renderer) members(b []byte) (all []member) {
	if len(b) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		r.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		m := member{name: fmt.Sprint(name)}
		if err == nil {
			err = d.Decode(&m.value)
		}
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func (r *renderer) operation(name string, op operation) {
	fmt.Fprintf(&r.out, "\n### `%s`\n\n%s.", name, op.Summary)
	if op.Description != "" {
		fmt.Fprintf(&r.out, " %s", op.Description)
	}
	r.out.WriteString("\n")
	if len(op.Parameters) > 0 {
		r.out.WriteString("\n| parameter | in | type | meaning |\n| --- | --- | --- | --- |\n")
	}
	for _, raw := range op.Parameters {
		var ref struct {
			Ref string `json:"$ref"`
		}
		var p parameter
		r.read(raw, &ref)
		if ref.Ref != "" {
			p = r.components.Parameters[last(ref.Ref)]
		} else {
			r.read(raw, &p)
		}
		fmt.Fprintf(&r.out, "| `%s` | %s | %s | %s |\n", p.Name, p.In, r.kind(p.Schema), cell.Replace(p.Description))
	}
	if op.RequestBody != nil {
		b := *op.RequestBody
		if b.Ref != "" {
			b = r.components.RequestBodies[last(b.Ref)]
		}
		r.body("Request", b)
	}
	answer := op.Responses["200"]
	if answer.Ref != "" {
		answer = r.components.Responses[last(answer.Ref)]
	}
	r.body("Answer", answer)
}

func (r *renderer) body(what string, b content) {
	for media, of := range b.Content {
		fmt.Fprintf(&r.out, "\n%s: ", what)
		if media != "application/json" {
			fmt.Fprintf(&r.out, "`%s`, ", media)
		}
		r.out.WriteString(r.kind(of.Schema))
		if b.Description != "" {
			fmt.Fprintf(&r.out, ", %s", b.Description)
		}
		r.out.WriteString(".\n")
	}
}

func (r *renderer) schema(name string, p property) {
	fmt.Fprintf(&r.out, "\n### %s\n\n", name)
	if p.Description != "" {
		fmt.Fprintf(&r.out, "%s.\n\n", strings.TrimSuffix(sentence(p.Description), "."))
	}
	properties := r.members(p.Properties)
	if len(properties) == 0 {
		fmt.Fprintf(&r.out, "Type: %s.\n", r.kind(p))
		return
	}
	r.out.WriteString("| attribute | type | meaning |\n| --- | --- | --- |\n")
	for _, m := range properties {
		var a property
		r.read(m.value, &a)
		kind := r.kind(a)
		if !slices.Contains(p.Required, m.name) {
			kind += ", optional"
		}
		fmt.Fprintf(&r.out, "| `%s` | %s | %s |\n", m.name, kind, cell.Replace(a.Description))
	}
}

// kind returns what values of a schema are.
func (r *renderer) kind(p property) string {
	switch {
	case p.Ref != "":
		return fmt.Sprintf("[%s](#%s)", last(p.Ref), strings.ToLower(last(p.Ref)))
	case len(p.Enum) > 0:
		return "`" + strings.Join(p.Enum, "`, `") + "`"
	case p.Items != nil:
		return "list of " + r.kind(*p.Items)
	case bytes.HasPrefix(p.Others, []byte("{")):
		var values property
		r.read(p.Others, &values)
		return "object of " + r.kind(values) + " by name"
	}
	kind := p.Type
	if p.Minimum != nil && p.Maximum != nil {
		kind += fmt.Sprintf(" from %d to %d", *p.Minimum, *p.Maximum)
	}
	if p.Default != nil {
		kind += fmt.Sprintf(", %v unless given", p.Default)
	}
	return kind
}

// cell writes a text so that a cell of a table shows it.
var cell = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;")

func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// sentence returns a text that begins with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
