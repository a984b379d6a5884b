package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// renewal requests ursula's SVID.
func renewal() hostapi.Request {
	return hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1,
		Body: kit.JSON(hostapi.CertBody{ID: ursula, CSR: kit.CSR(ursula, kit.NewKey())})}
}

// TestRefusalsAreSummed checks that repeated refusals, of strangers or of a known caller, leave few
// rows and log lines, and that each grant to a known caller still has a row.
func TestRefusalsAreSummed(t *testing.T) {
	var log buffer
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e.Start()
	const whole, many, wholeKnown, manyKnown = 100, 150, 300, 320
	for range many {
		_, err := e.Post(t, nil, hostapi.Path("cert"), "", []byte(`{`))
		providertest.WantError(t, err, hostapi.CodeMalformed)
	}
	svid := e.Client(ursula).SVID
	for range manyKnown {
		_, err := e.Post(t, svid, hostapi.Path("cert"), "", []byte(`{`))
		providertest.WantError(t, err, hostapi.CodeMalformed)
	}
	for range 3 {
		e.Post(t, nil, hostapi.PathNonce, "", nil)
	}
	if _, err := e.Client(ursula).Do(t.Context(), hostapi.Path("cert"), renewal()); err != nil {
		t.Fatal(err)
	}
	e.Restart()
	strangers, known, granted := 0, 0, 0
	var sums []server.Row
	for _, row := range e.Audit() {
		switch {
		case row.Outcome == server.Summed:
			sums = append(sums, row)
		case row.Outcome == server.Granted:
			granted++
		case row.Caller == "":
			strangers++
		default:
			known++
		}
	}
	if strangers != whole || known != wholeKnown || granted != 1 {
		t.Errorf("%d rows of strangers, %d and %d of ursula, want %d, %d and 1", strangers, known, granted, whole, wholeKnown)
	}
	// Sums that are written at the same time have no defined order.
	slices.SortFunc(sums, func(a, b server.Row) int { return strings.Compare(b.Caller, a.Caller) })
	if len(sums) != 2 || sums[0].Caller != ursula.String() || sums[0].Detail["malformed"] != "20" {
		t.Fatalf("sums: %+v", sums)
	}
	if sums = sums[1:]; sums[0].From != "127.0.0.1/32" || sums[0].Detail["malformed"] != "50" || sums[0].Detail["nonce"] != "3" || sums[0].Detail["since"] == "" {
		t.Errorf("sums: %+v", sums)
	}
	log.has(t, "level=INFO msg=summed from=127.0.0.1/32", 1)
	if n := strings.Count(log.b.String(), "code=malformed"); n != whole+wholeKnown {
		t.Errorf("%d lines, want %d", n, whole+wholeKnown)
	}
	for _, empty := range []string{`=""`, "serial=0", "enrolment=false", "replayed=false", "map[]"} {
		if strings.Contains(log.b.String(), empty) {
			t.Errorf("an empty field is logged: %s", empty)
		}
	}
}

// TestManyNetworks checks that strangers from any number of networks cause a bounded number of rows
// and use bounded memory, and that all refusals are counted.
func TestManyNetworks(t *testing.T) {
	e, _ := start(t, new(echo))
	audit := server.NewAudit(e.Store, slog.New(slog.DiscardHandler))
	const many = 3000
	for i := range many {
		row := server.Row{Time: time.Now(), From: fmt.Sprintf("[2001:db8:0:%x::%x]:1", i, i)}
		if err := audit.Stranger(t.Context(), row.Refuse(hostapi.Errorf(hostapi.CodeUntrusted, "no"))); err != nil {
			t.Fatal(err)
		}
	}
	audit.Sum(t.Context(), time.Now())
	whole, counted, others := 0, 0, 0
	for _, row := range e.Audit() {
		var n int
		fmt.Sscan(row.Detail[hostapi.CodeUntrusted.Name], &n)
		switch {
		case row.Outcome != server.Summed:
			whole++
		case row.From == "other networks":
			others += n
		default:
			counted += n
		}
	}
	if whole != 1000 || counted != 1024-1000 || others != many-1024 {
		t.Errorf("%d rows, %d counted by network and %d of others, want 1000, 24 and %d", whole, counted, others, many-1024)
	}
}

// TestHandshakes checks that a connection without a request leaves a trace, unless the client sent
// nothing.
func TestHandshakes(t *testing.T) {
	e, _ := start(t, new(echo))
	dial := func() net.Conn {
		c, err := e.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(kit.Patience))
		return c
	}
	dial().Close()
	plain := dial()
	io.WriteString(plain, "GET / HTTP/1.1\r\nHost: provider\r\n\r\n")
	io.ReadAll(plain)
	old := dial()
	if err := tls.Client(old, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).HandshakeContext(t.Context()); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	old.Close()
	odd := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{{
		Certificate: [][]byte{[]byte("no certificate")}, PrivateKey: e.Issue(ursula, time.Hour).PrivateKey,
	}}})
	io.WriteString(odd, "GET / HTTP/1.1\r\nHost: provider\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(odd), nil); err == nil {
		t.Error("a certificate that does not parse is taken")
	}
	odd.Close()
	var messages []string
	kit.Eventually(t, "three rows", func() bool {
		messages = nil
		for _, row := range e.Audit() {
			if row.Code != server.CodeHandshake || row.Outcome != "denied" || !strings.HasPrefix(row.From, "127.0.0.1:") {
				t.Errorf("%+v", row)
			}
			messages = append(messages, row.Message)
		}
		return len(messages) >= 3
	})
	all := strings.Join(messages, "\n")
	for _, part := range []string{"client sent an HTTP request to an HTTPS server", "unsupported versions", "failed to parse"} {
		if len(messages) != 3 || !strings.Contains(all, part) {
			t.Errorf("got %q, want …%s… among three", messages, part)
		}
	}
}
