package laws

import (
	"encoding/json"
	"strings"
	"testing"
)

// fact is a value that must be in no document.
const fact = "x95x"

// facts adds facts to some hosts and services.
func (c *cluster) facts() {
	for name, h := range c.Hosts {
		if len(h.Tags) > 0 {
			h.Facts = map[string]any{"key": fact + name, "port": 9100}
		}
	}
	for name, s := range c.Services {
		if s.User != "" {
			s.Facts = map[string]any{"names": []string{fact, name}}
		}
	}
}

// TestFactsAreInNoDocument checks that facts that others may read at evaluation are in no document.
func TestFactsAreInNoDocument(t *testing.T) {
	for _, s := range samples(t) {
		for host, docs := range s.is.Documents {
			b, err := json.Marshal(docs)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), fact) {
				t.Errorf("%s: a document of %s has a fact", s, host)
			}
		}
	}
}
