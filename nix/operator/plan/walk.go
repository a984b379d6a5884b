package plan

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// walk traverses a document and applies the rules to each of its values.
type walk struct {
	doc   string
	root  map[string]any
	facts []fact
	loose map[string]string // values that no rule explains, by their paths
}

// at is the position of a value in a document.
type at struct {
	*walk
	path []string         // names of fields, and identifying values of list elements
	up   []map[string]any // enclosing objects, innermost first
	v    any
}

// known contains the patterns of all rules, and their prefixes.
var known = func() map[string]bool {
	all := map[string]bool{}
	for pattern := range rules {
		for p := pattern; ; {
			all[p] = true
			i := max(strings.LastIndex(p, "."), strings.LastIndex(p, "[]"))
			if i < 0 {
				break
			}
			p = p[:i]
		}
	}
	return all
}()

func (w *walk) value(pattern string, path []string, up []map[string]any, v any) {
	if r, ok := rules[pattern]; ok {
		if r.grants != nil {
			w.facts = append(w.facts, r.grants(at{w, path, up, v})...)
		}
		if !r.deeper {
			return
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			next := pattern + "." + key
			if !known[next] && known[pattern+".*"] {
				next = pattern + ".*"
			}
			w.value(next, append(slices.Clone(path), key), append([]map[string]any{v}, up...), v[key])
		}
		if _, may := rules[pattern]; len(v) > 0 || known[pattern] && (may || !element(pattern)) {
			return
		}
	case []any:
		seen := map[string]int{}
		for _, e := range v {
			key := name(e)
			if seen[key]++; seen[key] > 1 {
				key = fmt.Sprintf("%s %d", key, seen[key])
			}
			w.value(pattern+"[]", append(slices.Clone(path), key), up, e)
		}
		if len(v) > 0 || known[pattern] {
			return
		}
	}
	w.loosen(path, v)
}

// element reports whether a pattern stands for one of several elements. Such elements are never
// empty unless a rule says so.
func element(pattern string) bool {
	return strings.HasSuffix(pattern, ".*") || strings.HasSuffix(pattern, "[]")
}

// loosen records a value that no rule explains.
func (w *walk) loosen(path []string, v any) {
	w.loose[w.doc+" "+strings.Join(path, ".")] = compact(v)
}

// rest records the fields of an object that no rule has explained. The argument explained lists the
// fields that were explained.
func (a at) rest(object map[string]any, explained ...string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(explained, key) {
			a.loosen(append(slices.Clone(a.path), key), object[key])
		}
	}
}

// object returns v as an object, or nil if it is not one.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text returns a string unchanged, and any other value as JSON.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

// shown formats a value on one line for people. A missing value results in "". The text is
// complete, so that different values look different.
func shown(v any) string {
	if v == nil {
		return ""
	}
	return compact(v)
}

// id formats an ID for people. If the trust domain of the ID is that of the document, it is left
// out; otherwise it is at the end. A value that is not an ID is shown unchanged.
func (a at) id(v any) string {
	id := shown(v)
	rest, is := strings.CutPrefix(id, "spiffe://")
	domain, path, found := strings.Cut(rest, "/")
	switch {
	case !is || !found:
		return id
	case domain == a.root["trustDomain"]:
		return path
	}
	return path + " of " + domain
}

// node returns the ID of the node to which the document belongs.
func (a at) node() string { return "node/" + a.host() }

func (a at) host() string { return shown(a.root["host"]) }

// holds returns the right of the host to act as an identity, or to be the node if the identity is
// the host's own.
func (a at) holds(id any) Right {
	if who := a.id(id); who != a.node() {
		return Right{a.node(), "act as", who}
	}
	return join(a.node())
}

// fingerprint returns the fingerprint of an SSH key as printed by ssh-keygen -l.
func fingerprint(key string) string {
	_, data, _ := strings.Cut(key, " ")
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return key
	}
	sum := sha256.Sum256(b)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// certificates names the certificates in a PEM text. The name of a certificate is its subject,
// followed by the digest that openssl x509 -fingerprint -sha256 prints. Any other text is named by
// its digest.
func certificates(text string) (names []string) {
	for rest := []byte(text); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		names, rest = append(names, certificate(block.Bytes)), more
	}
	if names == nil {
		names = []string{certificate([]byte(text))}
	}
	return names
}

func certificate(der []byte) string {
	sum := sha256.Sum256(der)
	name := "SHA256:" + hex.EncodeToString(sum[:])
	if c, err := x509.ParseCertificate(der); err == nil {
		return c.Subject.String() + " " + name
	}
	return name
}
