package laws

import (
	"maps"
	"slices"
)

// own is the declaration of a kind of the cluster's own.
type own struct {
	Port    int            `json:"port,omitempty"`
	Run     string         `json:"run,omitempty"`
	URL     string         `json:"url,omitempty"`
	Request map[string]any `json:"request,omitempty"`
	Answer  map[string]any `json:"answer,omitempty"`
}

// need is a need of such a kind.
type need struct {
	Kind       string         `json:"kind"`
	Called     string         `json:"called,omitempty"`
	Request    map[string]any `json:"request,omitempty"`
	Restart    string         `json:"restart,omitempty"`
	Generation int            `json:"generation,omitempty"`
	Rotate     int            `json:"rotate,omitempty"`
	After      []string       `json:"dependsOn,omitempty"`
}

// own adds kinds of the cluster's own, and needs of some services for them. Their executables do not
// exist.
func (g generator) own(c *cluster, hosts, services []string) {
	mailbox := own{Port: 4701, Run: "/run/laws/mailbox", Answer: map[string]any{"password": map[string]any{}, "server": map[string]any{"mode": "0444"}}}
	mailbox.Request = map[string]any{
		"address": map[string]any{"pattern": "*@example.org"}, "size": map[string]any{"type": "integer", "default": 3}, "on": map[string]any{"type": "boolean", "default": true},
	}
	dns := own{Port: 4702, URL: []string{"unix:/run/laws/dns.sock", "http://127.0.0.1:1/dns"}[g.IntN(2)], Answer: map[string]any{"token": map[string]any{}}}
	dns.Request = map[string]any{"labels": map[string]any{"type": "strings", "pattern": "a*"}}
	c.Providers["mailbox"] = provider{Hosts: hosts[g.IntN(len(hosts)):][:1], own: mailbox}
	c.Providers["dns"] = provider{Hosts: hosts[g.IntN(len(hosts)):][:1], own: dns}
	for _, name := range services {
		s := c.Services[name]
		if g.IntN(3) > 0 {
			continue
		}
		s.Needs = map[string]need{"mail": {Kind: "mailbox", Request: map[string]any{"address": "a@example.org"}, Generation: g.IntN(3)}}
		if g.IntN(2) == 0 {
			s.Needs["labels"] = need{Kind: "dns", Request: map[string]any{"labels": []string{"ab", "aa"}}, Restart: "web.service", After: []string{"mailbox-" + name + "-mail"}}
		}
		if mail := s.Needs["mail"]; s.Host != "" {
			mail.Rotate = g.IntN(2)
			s.Needs["mail"] = mail
		}
	}
}

// ownOn reports whether a service on the host has a need of a kind.
func (c *cluster) ownOn(host, kind string) bool {
	for _, s := range c.Services {
		for _, n := range s.Needs {
			if n.Kind == kind && slices.Contains(s.on(), host) {
				return true
			}
		}
	}
	return false
}

func init() { maps.Copy(edits, ownEdits) }

var ownEdits = map[string]func(generator, *cluster) bool{
	"another executable": onProvider("mailbox", func(_ generator, p *provider) { p.Run = "/run/laws/other" }),
	"another service":    onProvider("dns", func(_ generator, p *provider) { p.URL = "unix:/run/laws/other.sock" }),
	"open to read": onProvider("mailbox", func(_ generator, p *provider) {
		p.Answer = map[string]any{"password": map[string]any{"mode": "0444"}}
	}),
	"a need more": onService(func(g generator, s *service) bool {
		_, had := s.Needs["more"]
		if s.Needs == nil {
			s.Needs = map[string]need{}
		}
		s.Needs["more"] = need{Kind: "mailbox", Request: map[string]any{"address": "more@example.org"}}
		return !had
	}),
	"a need of a former name": onService(func(_ generator, s *service) bool {
		mail, had := s.Needs["mail"]
		if had {
			mail.Called = "former"
			s.Needs["mail"] = mail
		}
		return had
	}),
	"no needs": onService(func(g generator, s *service) bool { had := s.Needs != nil; s.Needs = nil; return had }),
	"another request": onService(func(g generator, s *service) bool {
		mail, had := s.Needs["mail"]
		if had {
			mail.Request = map[string]any{"address": "root@example.org", "size": 100}
			s.Needs["mail"] = mail
		}
		return had
	}),
}
