package publish

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// Encode writes the tree for Decode on another machine: {"<host>": {"documents":
// [{"envelope", "body", "signature"}, …]}, …}.
func (t Tree) Encode(w io.Writer) error {
	hosts := map[string]api.Artifact{}
	for host, documents := range t {
		var a api.Artifact
		for _, d := range documents {
			envelope, body, signature := d.Bytes()
			a.Documents = append(a.Documents, api.SignedDocument{Envelope: string(envelope), Body: string(body), Signature: signature})
		}
		hosts[host] = a
	}
	return json.NewEncoder(w).Encode(hosts)
}

// Decode reads a tree whose every document is signed by one of keys.
func Decode(r io.Reader, keys []string) (Tree, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var hosts map[string]api.Artifact
	if err := florete.Decode(b, &hosts); err != nil {
		return nil, fmt.Errorf("%w: want what florctl publish writes", err)
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("no host in it: want what florctl publish writes")
	}
	tree := Tree{}
	for host, a := range hosts {
		if host != filepath.Base(host) {
			return nil, fmt.Errorf("host %q: not a name", host)
		}
		for _, raw := range a.Documents {
			d, err := florete.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
			if err == nil {
				err = d.Verify(keys)
			}
			if err != nil {
				return nil, fmt.Errorf("host %q: %w", host, err)
			}
			if d.Envelope.Host != host {
				return nil, fmt.Errorf("host %q: the %s is of host %q", host, d.Envelope.Kind, d.Envelope.Host)
			}
			tree[host] = append(tree[host], d)
		}
	}
	return tree, nil
}
