package document

import (
	"net/netip"
	"testing"

	"github.com/florete/florete/internal/spiffe"
)

func id(t *testing.T, text string) spiffe.ID {
	t.Helper()
	parsed, err := spiffe.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestEntriesAreChecked checks that a manifest is refused if an entry leads to a service that the
// node may not reach, or if the forwarder could not tell the callers of the entry apart.
func TestEntriesAreChecked(t *testing.T) {
	node, other := id(t, "spiffe://demo.flor/node/gate"), id(t, "spiffe://demo.flor/node/other")
	mail, dns := id(t, "spiffe://demo.flor/service/mail"), id(t, "spiffe://demo.flor/service/dns")
	f := Forwarder{Reach: []Reachable{
		{ID: mail, Callers: []spiffe.ID{node}},
		{ID: dns, Protocol: UDP, Callers: []spiffe.ID{node}},
		{ID: dns, Port: "tcp", Callers: []spiffe.ID{other}},
	}}
	good := Entry{Listen: ":25", ID: mail, ServerNames: []string{"mail.example.org"}, From: networks("192.0.2.0/24"), Announce: true, AccessLog: AccessFull}
	datagrams := Entry{Listen: "[2001:db8::1]:53", ID: dns, Protocol: UDP}
	f.Entries = []Entry{good, datagrams}
	if err := f.checkEntries(node); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Entry){
		"a name to listen on":              func(e *Entry) { e.Listen = "gate:25" },
		"no port":                          func(e *Entry) { e.Listen = ":0" },
		"another protocol":                 func(e *Entry) { e.Protocol = "sctp" },
		"another log":                      func(e *Entry) { e.AccessLog = "some" },
		"a service that is not in reach":   func(e *Entry) { e.ID = id(t, "spiffe://demo.flor/service/wiki") },
		"a port that is not in reach":      func(e *Entry) { e.Port = "smtp" },
		"a protocol that is not in reach":  func(e *Entry) { e.Protocol = UDP },
		"a service for other callers":      func(e *Entry) { e.ID, e.Port = dns, "tcp" },
		"a server name of datagrams":       func(e *Entry) { *e = datagrams; e.ServerNames = good.ServerNames },
		"addresses told with datagrams":    func(e *Entry) { *e = datagrams; e.Announce = true },
		"a server name in upper case":      func(e *Entry) { e.ServerNames = []string{"Mail.example.org"} },
		"a server name with a wildcard":    func(e *Entry) { e.ServerNames = []string{"*.example.org"} },
		"a server name without a domain":   func(e *Entry) { e.ServerNames = []string{"mail"} },
		"an address instead of a network":  func(e *Entry) { e.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")} },
		"a network of mapped addresses":    func(e *Entry) { e.From = networks("::ffff:192.0.2.0/120") },
		"no network in a list of networks": func(e *Entry) { e.From = []netip.Prefix{{}} },
	} {
		e := good
		change(&e)
		f.Entries = []Entry{datagrams, e}
		if err := f.checkEntries(node); err == nil {
			t.Errorf("%s is accepted: %+v", what, e)
		}
	}
}
