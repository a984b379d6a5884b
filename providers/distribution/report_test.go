package distribution_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestReport checks that the report with the highest sequence number of a host is kept, in whatever
// order reports arrive. Unknown fields of newer releases are kept, and no audit rows are written.
func TestReport(t *testing.T) {
	e := start(t)
	c := e.Client(ursula)
	for _, r := range []struct{ sequence, want int64 }{{5, 5}, {3, 5}, {5, 5}, {6, 6}} {
		got, err := c.Report(t.Context(), fmt.Appendf(nil, `{"sequence":%d,"release":"%[1]d","new":{"a":[1]}}`, r.sequence))
		if err != nil || got.Sequence != r.want {
			t.Errorf("sequence %d: %+v, %v, want %d", r.sequence, got, err, r.want)
		}
	}
	kept := func(host string) (r hostreport.Kept) {
		entry, err := e.Store.Get(context.Background(), server.ReportPrefix+host)
		if errors.Is(err, store.ErrNotFound) {
			return r
		}
		if err == nil {
			err = json.Unmarshal(entry.Value, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := kept("ursula")
	h, err := r.Decode()
	if err != nil || h.Release != "6" || r.Sequence != 6 || r.Received.IsZero() || string(r.Report) != `{"sequence":6,"release":"6","new":{"a":[1]}}` {
		t.Errorf("kept %+v, %s, %v", r, r.Report, err)
	}
	if rows := e.Audit(); len(rows) != 0 {
		t.Errorf("audit: %+v", rows)
	}

	for _, bad := range []string{"", "{", `{}`, `{"sequence":0}`, `{"sequence":-1}`, `{"sequence":"7"}`, `{"sequence":7,"sequence":8}`, `[]`} {
		_, err := c.Report(t.Context(), []byte(bad))
		providertest.WantError(t, err, hostapi.CodeMalformed)
	}
	thief := e.Client(ursula)
	for _, thief.HostKey = range []ssh.Signer{nil, e.HostKey(raishan)} {
		_, err := thief.Report(t.Context(), []byte(`{"sequence":9}`))
		providertest.WantError(t, err, hostapi.CodeDeviceKey)
	}
	_, err = e.Client(kit.ID("node/laptop")).Report(t.Context(), []byte(`{"sequence":9}`))
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	if kept("ursula").Sequence != 6 || kept("laptop").Sequence != 0 {
		t.Error("a refused report was kept")
	}
}

// TestOrder checks control.Order against the orders that hosts receive. A rotation that is ordered
// without its number gets the number after the one in the next report, even if the host has never
// reported. A rotation of a lost state is forgotten.
func TestOrder(t *testing.T) {
	e := start(t)
	c := e.Client(ursula)
	row := server.Row{Time: time.Now().UTC(), Kind: "config", Outcome: server.Changed, Code: "rotate", Message: "ordered"}
	order := func() {
		t.Helper()
		if err := control.Order(t.Context(), e.Store, "ursula", "oidc-wiki", func(hostreport.Kept) (int, server.Row, error) { return hostreport.NextRotation, row, nil }); err != nil {
			t.Fatal(err)
		}
	}
	order()
	for i, r := range []struct{ rotations, want int }{{3, 4}, {3, 4}, {0, 0}, {3, 0}} {
		got, err := c.Report(t.Context(), fmt.Appendf(nil, `{"sequence":%d,"needs":[{"id":"oidc-wiki","rotations":%d}]}`, i+1, r.rotations))
		if err != nil || got.Rotate["oidc-wiki"] != r.want {
			t.Errorf("report %d, of rotation %d: %+v, %v, want %d", i+1, r.rotations, got, err, r.want)
		}
	}
	order()
	if got, err := c.Report(t.Context(), []byte(`{"sequence":9,"needs":[{"id":"oidc-wiki","rotations":1}]}`)); err != nil || got.Rotate["oidc-wiki"] != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAccepted checks that an audit log that a person on a host accepted has one row about this.
func TestAccepted(t *testing.T) {
	e := start(t)
	c := e.Client(ursula)
	word := func(at int64) hostdir.AcceptedAudit {
		return hostdir.AcceptedAudit{ReportedAudit: hostdir.ReportedAudit{Provider: "forge", Kind: "cert", Fault: "2 rows are gone\x1b[2J", Since: unixtime.Unix(1000)},
			At: unixtime.Unix(at), By: "eve", Reason: "restored"}
	}
	for i, words := range [][]hostdir.AcceptedAudit{{}, {word(2000)}, {word(2000)}, {word(2000), word(3000)}, make([]hostdir.AcceptedAudit, hostdir.MaxAccepted+1)} {
		if _, err := c.Report(t.Context(), fmt.Appendf(nil, `{"sequence":%d,"accepted":%s}`, i+1, kit.JSON(words))); err != nil {
			t.Fatal(err)
		}
	}
	var at []string
	for _, r := range e.Rows() {
		if r.Code != "audit-accepted" {
			continue
		}
		at = append(at, r.Detail["at"])
		if r.Caller != ursula.String() || r.Outcome != server.Changed || r.Detail["by"] != "eve" || r.Detail["reason"] != "restored" || r.Detail["provider"] != "forge" || strings.Contains(r.Message, "\x1b") || !strings.Contains(r.Message, "2 rows are gone") {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"1970-01-01T00:33:20Z", "1970-01-01T00:50:00Z"}; !slices.Equal(at, want) {
		t.Errorf("rows of %v, want %v", at, want)
	}
}

// TestRecorded checks that each recording that a host reports has one row, however often the host
// reports it.
func TestRecorded(t *testing.T) {
	e := start(t)
	c := e.Client(ursula)
	summary := func(n int64, cut bool) recording.Summary {
		return recording.Summary{Number: n, File: fmt.Sprintf("%d.cast.age", n), Service: kit.ID("service/shell/eu"), Caller: kit.ID("user/alice"), Account: "deploy\x1b[2J", Begun: unixtime.Unix(1000), Ended: unixtime.Unix(2000), Bytes: 7, SHA256: "ab", Cut: cut}
	}
	one, two, three := summary(1, false), summary(2, true), summary(3, false)
	for i, all := range [][]recording.Summary{{one}, {one, two}, {one, two}, {two, three}, {}, make([]recording.Summary, recording.MaxReported+1)} {
		if _, err := c.Report(t.Context(), fmt.Appendf(nil, `{"sequence":%d,"recordings":%s}`, i+1, kit.JSON(all))); err != nil {
			t.Fatal(err)
		}
	}
	var files []string
	for _, r := range e.Rows() {
		if r.Code != "session-recorded" {
			continue
		}
		files = append(files, r.Detail["file"])
		if r.Caller != ursula.String() || r.Detail["sha256"] != "ab" || r.Detail["bytes"] != "7" || r.Detail["ended"] != "1970-01-01T00:33:20Z" || strings.Contains(r.Message, "\x1b") ||
			strings.HasSuffix(r.Message, "not to its end") != (r.Detail["file"] == "2.cast.age") || !strings.Contains(r.Message, "user/alice as deploy") {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"1.cast.age", "2.cast.age", "3.cast.age"}; !slices.Equal(files, want) {
		t.Errorf("rows of %v, want %v", files, want)
	}
}
