package sshlogin_test

import (
	"net/netip"
	"testing"

	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

func TestKnownHosts(t *testing.T) {
	reach := func(short string, port uint16, keys []string, aliases ...string) document.Reachable {
		return document.Reachable{ID: kit.ID(short), Listen: netip.AddrPortFrom(netip.MustParseAddr("127.1.2.3"), port), HostKeys: keys, Aliases: aliases}
	}
	m := document.Manifest{Forwarder: document.Forwarder{Reach: []document.Reachable{
		reach("service/eu/shell", 22, []string{"ssh-ed25519 A", "ssh-rsa B"}, "eu.demo.flor.rete"),
		reach("service/jump", 2222, []string{"ssh-ed25519 C"}, "*.apps.demo.flor.rete"),
		reach("service/wiki", 80, nil),
	}}}
	const (
		shellLines = "shell.eu.demo.flor.rete,eu.demo.flor.rete ssh-ed25519 A\nshell.eu.demo.flor.rete,eu.demo.flor.rete ssh-rsa B\n"
		jumpLine   = "[jump.demo.flor.rete]:2222,[*.apps.demo.flor.rete]:2222 ssh-ed25519 C\n"
	)
	for host, want := range map[string]string{
		"":                             shellLines + jumpLine,
		"eu.demo.flor.rete":            "eu.demo.flor.rete ssh-ed25519 A\neu.demo.flor.rete ssh-rsa B\n",
		"[eu.demo.flor.rete]:2222":     "",
		"[jump.demo.flor.rete]:2222":   "[jump.demo.flor.rete]:2222 ssh-ed25519 C\n",
		"[a.apps.demo.flor.rete]:2222": "[*.apps.demo.flor.rete]:2222 ssh-ed25519 C\n",
		"jump.demo.flor.rete":          "",
		"wiki.demo.flor.rete":          "",
		"other.demo.flor.rete":         "",
		"127.1.2.3":                    "",
	} {
		if got := sshlogin.KnownHosts(m, host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
