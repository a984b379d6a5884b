package tests

import (
	"os"
	"strings"
	"testing"
)

// limits pairs the text of a constant in the code with the row of docs/explain/limits.md, or of
// docs/reference/units.md, that states it.
var limits = []struct{ file, code, row string }{
	{"../agent/forward/inbound/peers.go", "Connections: 512, Total: 4096,", "| Connections of a peer over QUIC; of all peers | 512; 4,096 |"},
	{"../agent/forward/inbound/peers.go", "OverTCP: 4096, TotalOverTCP: 1 << 14", "| Connections of a peer over TCP; of all peers | 4,096; 16,384 |"},
	{"../agent/forward/inbound/peers.go", "Streams: 1 << 13,", "| Streams of a peer in all connections | 8,192 |"},
	{"../agent/forward/transport/transport.go", "const MaxStreams = 4096", "| Streams of one connection | 4,096 |"},
	{"../agent/forward/outbound/outbound.go", "const perUser = 1 << 14", "| Connections of a local account | 16,384 |"},
	{"../agent/forward/outbound/session.go", "maxSessions = 1024", "| UDP sessions of a local account for one service; of a connection | 1,024; 4,096 |"},
	{"../agent/forward/datagram/mux.go", "MaxSessions = 4096", "| UDP sessions of a local account for one service; of a connection | 1,024; 4,096 |"},
	{"../agent/forward/datagram/mux.go", "maxHeld     = 256 << 10", "of a user's or peer's sessions | 256 KiB; 16 MiB |"},
	{"../agent/forward/datagram/mux.go", "maxAll      = 16 << 20", "of a user's or peer's sessions | 256 KiB; 16 MiB |"},
	{"../agent/forward/wire/datagram.go", "const MaxPayload = 65507", "| A datagram | 65,507 bytes |"},
	{"../agent/forward/announce/http.go", "const maxHeaders = 64 << 10", "| Headers of a request with `identity = \"http\"` | 64 KiB |"},
	{"../agent/forward/usage/shed.go", "memory = 512 << 20", "A forwarder uses at most 512 MiB of memory"},
	{"../internal/trust/revocation.go", "const MaxRevocations = 128 << 10", "| A revocation list | 128 KiB"},
	{"../internal/trust/revocation.go", "const MaxLifetime = 90 * 24 * time.Hour", "| SVID of a node, service or user | 1 day; 90 days at most |"},
	{"../internal/hostapi/client.go", "MaxRequest  = 64 << 10", "| 64 KiB; 8 MiB; 32 MiB; 1 MiB |"},
	{"../providers/ca/ca.go", "RootLifetime    = 10 * 365 * 24 * time.Hour", "| Root | 10 years |"},
	{"../providers/ca/ca.go", "IssuingLifetime = 365 * 24 * time.Hour", "| Issuing certificate | 1 year |"},
	{"../nix/operator/revocation/revocation.go", "const Lifetime = 30 * 24 * time.Hour", "| Revocation list, until a newer one is due | 30 days; 90 at most |"},
	{"../providers/cert/crl.go", "crlLifetime = 7 * 24 * time.Hour", "| CRL for other software | 7 days, signed daily |"},
	{"../providers/jwt/jwt.go", "tokensLive = 5 * time.Minute", "| JWT-SVID | 5 minutes |"},
	{"../providers/ssh/ssh.go", "maxLifetime = 24 * time.Hour", "| SSH certificate of a user | 1 hour; a day at most |"},
	{"../providers/ssh/ssh.go", "announced = 7 * 24 * time.Hour", "| Key that signs SSH certificates | 30 days, and a week before that published |"},
	{"../providers/join/operate.go", "MaxLifetime = 7 * 24 * time.Hour", "| Join token | 1 hour; a week at most |"},
	{"../providers/control/versions.go", "const maxBody = 1 << 30", "| A publication | 1 GiB |"},
	{"../activation/needstate/backoff.go", "const LongestWait = 5 * time.Minute", "at most 5 minutes after `transient`"},
	{"../nix/kinds/cert.nix", "86400", "| SVID of a node, service or user | 1 day; 90 days at most |"},
	{"../nix/units/agent.nix", "MemoryMax = \"1G\"", "| `florete-agent.service` | `florete` | 1 GiB |"},
	{"../nix/units/store.nix", "MemoryMax = \"2G\"", "| `florete-store.service` | `florete-store`, dynamic | 2 GiB |"},
}

// TestLimitsPage checks that the page of limits states the constants in the code.
func TestLimitsPage(t *testing.T) {
	const page = "../docs/explain/limits.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	units, err := os.ReadFile("../docs/reference/units.md")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, units...)
	for _, l := range limits {
		source, err := os.ReadFile(l.file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(source), l.code) {
			t.Errorf("%s has no %q any more: correct %q in %s, and this test", l.file, l.code, l.row, page)
		}
		if !strings.Contains(string(text), l.row) {
			t.Errorf("%s has no %q, which is what %s has: %s", page, l.row, l.file, l.code)
		}
	}
}
