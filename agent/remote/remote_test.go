package remote_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/agent/remote"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

var alice, bob = kit.ID("user/alice"), kit.ID("user/bob")

const uidAlice, uidBob, uidNobody = 4001, 4002, 4003

// laptop is a manifest. On this host, alice opens desktops of two hosts, a screen and a shell with
// recorded sessions, and bob opens one desktop and a wiki.
func laptop() document.Manifest {
	reach := func(id string, at string, over document.Remote, callers ...spiffe.ID) document.Reachable {
		return document.Reachable{ID: kit.ID(id), Listen: netip.MustParseAddrPort(at), Remote: over, Callers: callers}
	}
	shell := reach("service/shell", "127.0.9.4:2222", document.RemoteSSH, alice)
	shell.Recorded = true
	shell.Aliases = []string{"sh.demo.flor.rete"}
	return document.Manifest{Host: "laptop", TrustDomain: kit.Domain, Forwarder: document.Forwarder{
		Callers: []document.Caller{{ID: alice, UIDs: []uint32{uidAlice}}, {ID: bob, UIDs: []uint32{uidBob}}},
		Reach: []document.Reachable{
			reach("service/anvil/desk", "127.0.9.1:3389", document.RemoteRDP, alice),
			reach("service/forge/desk", "127.0.9.2:3389", document.RemoteRDP, alice, bob),
			reach("service/screen", "127.0.9.3:5900", document.RemoteVNC, alice),
			shell,
			reach("service/wiki", "127.0.9.5:80", document.NotRemote, bob),
		},
	}}
}

func TestList(t *testing.T) {
	m := laptop()
	for uid, want := range map[uint32]string{
		uidAlice:  "desk.anvil rdp anvil, desk.forge rdp forge, screen vnc , shell ssh ",
		uidBob:    "desk.forge rdp forge",
		uidNobody: "",
	} {
		var got []string
		for _, s := range remote.List(m, remote.NewAccount(m, uid)) {
			got = append(got, s.Name+" "+string(s.Protocol)+" "+s.Host)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("uid %d: %q, want %q", uid, text, want)
		}
	}
	var table strings.Builder
	if err := remote.Print(&table, remote.List(m, remote.NewAccount(m, uidAlice))); err != nil {
		t.Error(err)
	}
	if want := `NAME        PROTOCOL       HOST   AT
desk.anvil  rdp            anvil  desk.anvil.demo.flor.rete:3389
desk.forge  rdp            forge  desk.forge.demo.flor.rete:3389
screen      vnc            any    screen.demo.flor.rete:5900
shell       ssh, recorded  any    shell.demo.flor.rete:2222
`; table.String() != want {
		t.Errorf("%s", table.String())
	}
}

func TestFind(t *testing.T) {
	m := laptop()
	for _, x := range []struct {
		uid        uint32
		name, want string
	}{
		{uidAlice, "desk.anvil", "service/anvil/desk"},
		{uidAlice, "desk.anvil.demo.flor.rete", "service/anvil/desk"},
		{uidAlice, "sh", "service/shell"},
		{uidAlice, "sh.demo.flor.rete", "service/shell"},
		{uidAlice, "desk", "on several hosts, want one of desk.anvil, desk.forge"},
		{uidBob, "desk", "service/forge/desk"}, // the only one that bob may open
		{uidBob, "desk.anvil", "user/bob may not open desk.anvil: florctl explain bob desk.anvil"},
		{uidBob, "wiki", `write services.wiki.protocol`},
		{uidAlice, "sreen", `no service "sreen": did you mean screen?`},
		{uidAlice, "dek", `did you mean desk?`},
		{uidAlice, "nothing-alike", "want one of desk.anvil, desk.forge, screen, shell"},
		{uidAlice, "shell.elsewhere.flor.rete", "no service"},
		{uidNobody, "desk.forge", "acts as nobody on host laptop: add the user to hosts.laptop.users"},
	} {
		s, err := remote.Find(m, remote.NewAccount(m, x.uid), x.name)
		if got := s.ID; err == nil && got.Short() != x.want || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%d %s: %v, %v, want %s", x.uid, x.name, got, err, x.want)
		}
	}
}

func TestCommand(t *testing.T) {
	m := laptop()
	for _, x := range []struct {
		programs, words, client, want string
	}{
		{"ssh", "shell", "", "ssh -p 2222 127.0.9.4"},
		{"ssh", "deploy@shell uptime -p", "", "ssh -p 2222 -l deploy 127.0.9.4 uptime -p"},
		{"xfreerdp wlfreerdp", "desk.forge", "", "xfreerdp /v:127.0.9.2:3389 /cert:ignore"},
		{"xfreerdp xfreerdp3", "bob@desk.forge /f", "", "xfreerdp3 /v:127.0.9.2:3389 /cert:ignore /u:bob /f"},
		{"xfreerdp remmina", "desk.forge", "remmina", "remmina /v:127.0.9.2:3389 /cert:ignore"},
		{"xtigervncviewer", "screen -FullScreen", "", "xtigervncviewer -FullScreen 127.0.9.3::5900"},
		{"xtigervncviewer", "bob@screen", "", "VNC has no accounts"},
		{"", "screen", "", "none of its clients is in PATH (vncviewer, xtigervncviewer, xtightvncviewer): install the Debian package tigervnc-viewer"},
		{"", "desk.anvil", "", "install the Debian package freerdp3-x11, or freerdp2-x11 on Debian 12"},
		{"", "shell", "", "install the Debian package openssh-client"},
		{"ssh", "shell", "mosh", `no program "mosh" in PATH`},
		{"ssh", "-oProxyCommand=id@shell", "", `account "-oProxyCommand=id", want a name`},
		{"ssh", "a b@shell", "", `want a name`},
	} {
		bin := t.TempDir()
		for name := range strings.FieldsSeq(x.programs) {
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		words := strings.Split(x.words, " ")
		if strings.HasPrefix(x.words, "a b") {
			words = []string{x.words}
		}
		account, name, err := remote.Split(words[0])
		var got []string
		if err == nil {
			s, err2 := remote.Find(m, remote.NewAccount(m, uidAlice), name)
			if err2 != nil {
				t.Fatal(err2)
			}
			got, err = remote.Session{Service: s, Account: account, Client: x.client, Args: words[1:]}.Command(t.Context())
		}
		if err != nil {
			if !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v, want %s", x.words, err, x.want)
			}
			continue
		}
		if filepath.Dir(got[0]) != bin {
			t.Errorf("%s: program %s", x.words, got[0])
		}
		got[0] = filepath.Base(got[0])
		if !slices.Equal(got, strings.Fields(x.want)) {
			t.Errorf("%s: %q, want %q", x.words, got, x.want)
		}
	}
}

func TestQuote(t *testing.T) {
	if got, want := remote.Quote([]string{"/usr/bin/ssh", "-l", "it's", "", "a b", "$x"}), `/usr/bin/ssh -l 'it'\''s' '' 'a b' '$x'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
