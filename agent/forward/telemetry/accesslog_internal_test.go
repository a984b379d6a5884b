package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

var anAccess = Access{
	Caller: kit.ID("user/alice"), Service: kit.ID("service/wiki"), From: "192.0.2.7:4610", Upstream: "127.0.0.1:8080", Transport: document.OverQUIC,
	Begun: time.Unix(1, 0).UTC(), Duration: 1500 * time.Microsecond, Sent: 12, Received: 34, End: "done",
}

// TestForeignCaller checks that a caller of another trust domain is not mistaken for one of ours.
func TestForeignCaller(t *testing.T) {
	e := anAccess
	e.Caller = kit.IDIn("blue.example", "user/alice")
	if want := "caller=spiffe://blue.example/user/alice service=service/wiki"; !strings.Contains(accessLine(e), want) {
		t.Errorf("got %s, want %s", accessLine(e), want)
	}
}

func TestAccessLog(t *testing.T) {
	var out bytes.Buffer
	NewAccessLog(&out, slog.New(slog.DiscardHandler)).Write(anAccess)
	var got Access
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || !reflect.DeepEqual(got, anAccess) {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := "access caller=user/alice service=service/wiki from=192.0.2.7:4610 sent=12 received=34 duration=1.5ms transport=quic end=done"; accessLine(anAccess) != want {
		t.Errorf("got %s, want %s", accessLine(anAccess), want)
	}
}

// TestAccessLogPort checks that an entry names the port if a service has several.
func TestAccessLogPort(t *testing.T) {
	e := anAccess
	e.Port = "metrics"
	if want := "service=service/wiki:metrics from="; !strings.Contains(accessLine(e), want) {
		t.Errorf("got %s, want %s", accessLine(e), want)
	}
}

// TestStorm checks that a storm of connections causes a limited number of lines, and that the
// number of omitted ones is logged.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, log bytes.Buffer
		l := NewAccessLog(&out, slog.New(slog.NewTextHandler(&log, nil)))
		for range 100 {
			for range 1000 {
				l.Write(anAccess)
			}
			time.Sleep(100 * time.Millisecond)
		}
		l.Close()
		written := strings.Count(out.String(), "\n")
		if written < 1200 || written > 1300 {
			t.Errorf("%d lines of 100,000 in 10 s, want 300 and 100 a second", written)
		}
		if n := strings.Count(log.String(), "left out"); n != 2 {
			t.Errorf("logged %d times what was left out", n)
		}
	})
}

func TestWants(t *testing.T) {
	l := NewAccessLog(nil, nil)
	l.random = rand.New(rand.NewPCG(1, 2)).IntN
	for which, want := range map[document.AccessLog][2]int{document.AccessOff: {0, 0}, document.AccessFull: {10000, 10000}, document.AccessSampled: {60, 140}} {
		n := 0
		for range 10000 {
			if l.Wants(which) {
				n++
			}
		}
		if n < want[0] || n > want[1] {
			t.Errorf("%q: %d of 10000, want %v", which, n, want)
		}
	}
	if (*AccessLog)(nil).Wants(document.AccessFull) {
		t.Error("no log wants something")
	}
}
