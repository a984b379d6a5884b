package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestThreshold attacks a cluster that requires two signatures, with one stolen signing key.
func TestThreshold(t *testing.T) {
	c := start(t)
	agenttest.Root(t, "to act as dora")
	stolen, second, gone := c.signingKey(t), kit.SigningKey("sec-2"), kit.SigningKey("sec-3")
	file := map[string]string{"stolen": c.Path("operator", "signing.key"), "second": c.Path("operator", "second.key")}
	if err := os.WriteFile(file["second"], []byte(second.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := c.Path("cluster", "facts.json")
	was := kit.ReadFile(facts)
	write := func(more map[string]any) {
		t.Helper()
		var all map[string]any
		if err := json.Unmarshal(was, &all); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, more)
		if err := os.WriteFile(facts, kit.JSON(all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	record := file["stolen"] + ".signed"
	// together runs florctl as both operators, who sign one after the other.
	together := func(args ...string) error {
		t.Helper()
		signatures := filepath.Join(t.TempDir(), "signatures.json")
		with := func(key string, more ...string) (string, error) {
			return c.florctl(t, append(append(args, "--key", file[key], "--signed", record), more...)...)
		}
		if _, err := with("second", "--sign-only", signatures); err != nil {
			return err
		}
		_, err := with("stolen", "--with", signatures)
		return err
	}
	commit := func(more map[string]any) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // so that the serial is another
		write(more)
		if err := c.Record(t.Context(), time.Now(), "threshold"); err != nil {
			t.Fatal(err)
		}
	}
	// The list of other tests has no record. Both operators sign the next list.
	if last := c.offered(t); last.List != "" {
		next := c.revoke(t, last, func(*trust.Revocations) {})
		next.Signature += " " + sign(t, second, trust.RevocationsText(next.List))
		if err := c.offer(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	keys := []string{stolen.ToPublicKey().String(), second.ToPublicKey().String()}
	commit(map[string]any{"keys": keys, "threshold": 2})
	if err := together("publish", "--at-once"); err != nil {
		t.Fatal(err)
	}
	defer func() { // while both keys are pinned, they can sign a lower threshold
		commit(map[string]any{"keys": keys, "note": "lower"})
		if err := together("publish", "--at-once"); err != nil {
			t.Error(err)
		}
		commit(map[string]any{"note": "as before"})
		kit.Succeeds(t, "one key to be enough", func() error {
			_, err := c.florctl(t, "publish", "--at-once", "--key", file["stolen"])
			return err
		})
	}()
	for _, h := range c.hosts() {
		kit.Succeeds(t, "the threshold in force on "+h.Name, func() error {
			m, err := document.Read(filepath.Join(h.Layout().Documents(), "current"), document.DocManifest)
			if err == nil && m.Manifest().Trust.Threshold != 2 {
				err = fmt.Errorf("threshold %d", m.Manifest().Trust.Threshold)
			}
			return err
		})
	}
	older := c.stream(t)
	commit(map[string]any{"keys": keys, "threshold": 2, "note": "next"})
	next := c.stream(t)
	// signed returns the next documents with forged signatures. The function change returns the
	// signature of each document.
	signed := func(change func(host int, d int, of hostapi.SignedDocument) string) []byte {
		var out bytes.Buffer
		lines := json.NewEncoder(&out)
		lines.SetEscapeHTML(false)
		_ = lines.Encode(next.head)
		for i, h := range next.hosts {
			documents := append([]hostapi.SignedDocument{}, h.Documents...)
			for j, d := range documents {
				documents[j].Signature = change(i, j, d)
			}
			_ = lines.Encode(archive.StreamHost{Name: h.Name, Documents: documents})
		}
		return out.Bytes()
	}
	one := func(_, _ int, d hostapi.SignedDocument) string { return strings.Fields(d.Signature)[0] }
	const tooFew = "signed by 1 of the 2 keys"
	post := func(path string, body []byte) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error { return c.send(t.Context(), path, body) }
	}
	run(t, []attack{
		{name: "one key publishes with florctl", refusal: tooFew, try: func(t *testing.T, c *cluster) error {
			_, err := c.florctl(t, "publish", "--at-once", "--key", file["stolen"])
			return err
		}},
		{name: "one key publishes", refusal: tooFew, try: post("/v1/publish?atOnce=true", signed(one))},
		{name: "one key signs twice", refusal: tooFew, try: post("/v1/publish?atOnce=true", signed(func(i, j int, d hostapi.SignedDocument) string {
			return one(i, j, d) + " " + one(i, j, d)
		}))},
		{name: "the other signature is of an older serial", refusal: tooFew, try: post("/v1/publish?atOnce=true", signed(func(i, j int, d hostapi.SignedDocument) string {
			return one(i, j, d) + " " + strings.Fields(older.hosts[i].Documents[j].Signature)[1]
		}))},
		{name: "the other signature is by a key that was removed", refusal: tooFew, try: post("/v1/publish?atOnce=true", signed(func(i, j int, d hostapi.SignedDocument) string {
			return one(i, j, d) + " " + sign(t, gone, document.SignedText([]byte(d.Envelope)))
		}))},
		{name: "one key rolls back", refusal: tooFew, try: post(fmt.Sprintf("/v1/rollback/%d", older.head.Serial), signed(one))},
		{name: "one key revokes", refusal: tooFew, try: func(t *testing.T, c *cluster) error {
			return c.offer(t.Context(), c.revoke(t, c.offered(t), func(l *trust.Revocations) { revocation.Revoke(l, revocation.Target{ID: kit.ID("user/carol")}) }))
		}},
		{name: "one key revokes with florctl", refusal: tooFew, try: func(t *testing.T, c *cluster) error {
			_, err := c.florctl(t, "revoke", "user/carol", "--key", file["stolen"])
			return err
		}},
		{name: "one key lets a token admit", refusal: tooFew, try: func(t *testing.T, c *cluster) error {
			token, err := hostapi.NewJoinToken("p")
			if err != nil {
				t.Fatal(err)
			}
			until := unixtime.Of(time.Now().Add(time.Hour))
			text := string(kit.JSON(trust.JoinGrant{Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: "sec", Node: kit.ID("node/h"), Token: token.Public(), Until: until}))
			return c.control(t.Context(), join.Token{ID: hostapi.TokenID(token.Public()), Hosts: "h", Uses: 1, Until: until,
				Grant: &trust.SignedGrant{Grant: text, Signature: sign(t, stolen, trust.JoinGrantText(text))}}, new(any), "POST", "/v1/tokens")
		}},
		{name: "one key lowers the threshold", refusal: tooFew, try: func(t *testing.T, c *cluster) error {
			commit(map[string]any{"keys": keys[:1]})
			_, err := c.florctl(t, "publish", "--at-once", "--key", file["stolen"])
			return err
		}},
	})
	write(map[string]any{"keys": keys, "threshold": 2, "note": "both"})
	if err := c.Record(t.Context(), time.Now(), "both"); err != nil {
		t.Fatal(err)
	}
	if err := together("revoke", "user/erin", "--wait", "0s"); err != nil && !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("two keys revoke: %v", err)
	}
	if err := together("reinstate", "user/erin", "--wait", "0s"); err != nil && !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("two keys reinstate: %v", err)
	}
	c.rolledBackTogether(t, together, older)
	c.joinsTogether(t, together, file["stolen"])
}

// rolledBackTogether checks that two operators roll back together, and that the hosts accept it.
func (c *cluster) rolledBackTogether(t *testing.T, together func(...string) error, older stream) {
	t.Helper()
	if err := together("rollback", fmt.Sprint(older.head.Serial)); err == nil || !strings.Contains(err.Error(), "is the newest") {
		t.Errorf("two keys roll back to the version in force: %v", err)
	}
	if err := together("publish", "--at-once"); err != nil {
		t.Fatal(err)
	}
	published := c.stream(t).head.Serial
	if err := together("rollback", fmt.Sprint(older.head.Serial)); err != nil {
		t.Fatal(err)
	}
	for _, h := range c.hosts() {
		i := slices.IndexFunc(older.hosts, func(o archive.StreamHost) bool { return o.Name == h.Name })
		was, err := document.ParseEnvelope([]byte(older.hosts[i].Documents[0].Envelope))
		if err != nil {
			t.Fatal(err)
		}
		kit.Succeeds(t, "the former documents on "+h.Name, func() error {
			is, err := document.ReadEnvelope(filepath.Join(h.Layout().Documents(), "current"), was.Kind)
			if err == nil && (is.Serial <= published || is.Digest != was.Digest || is.Rev != was.Rev) {
				err = fmt.Errorf("%+v, want %+v with a serial after %d", is, was, published)
			}
			return err
		})
	}
}

// joinsTogether checks that a device becomes a host only if two operators approve it.
func (c *cluster) joinsTogether(t *testing.T, together func(...string) error, stolen string) {
	t.Helper()
	key := kit.NewHostKey()
	device, token := c.device(t, "i", "config", key), c.token(t, "i", 1, time.Hour, false)
	kit.Succeeds(t, "the device asks to join", func() error {
		_, err := device.Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &token)
		if err != nil && hostapi.AsError(err).Code == hostapi.CodeBusy.Name {
			time.Sleep(time.Second) // join tokens were guessed less than a minute ago
		}
		return err
	})
	approve := []string{"join", "approve", "i", "--device", ssh.FingerprintSHA256(key.PublicKey())}
	run(t, []attack{
		{name: "one key admits a device with florctl", refusal: "signed by 1 of the 2 keys", try: func(t *testing.T, c *cluster) error {
			_, err := c.florctl(t, append(approve, "--key", stolen)...)
			return err
		}},
		{name: "one key admits a device", refusal: "signed by 1 of the 2 keys", try: func(t *testing.T, c *cluster) error {
			return c.control(t.Context(), control.Decision{Admission: admission(t, c.signingKey(t), "i", c.requested(t, "i").Device)}, new(join.Request), "POST", "/v1/joins/i")
		}},
		{name: "one key admits a device at the provider of certificates", refusal: "signed by 1 of the 2 keys", try: func(t *testing.T, c *cluster) error {
			client := c.device(t, "i", "cert", key)
			client.Admission = admission(t, c.signingKey(t), "i", c.requested(t, "i").Device)
			return enrol(t, client)
		}},
	})
	if r := c.requested(t, "i"); r.State != hostapi.JoinPending {
		t.Errorf("got %+v, want a request that waits", r)
	}
	if err := together(approve...); err != nil {
		t.Fatal(err)
	}
	joined, err := device.Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, nil)
	if err != nil || joined.State != hostapi.JoinApproved {
		t.Fatalf("got %+v, %v", joined, err)
	}
	client := c.device(t, "i", "cert", key)
	client.Admission = joined.Admission
	kit.Succeeds(t, "the certificate of the device", func() error { return enrol(t, client) })
}

// stream contains signed documents, in the form that florctl publish --out writes.
type stream struct {
	head  archive.Head
	hosts []archive.StreamHost
}

// stream returns the documents of the last commit with the signatures of both operators.
func (c *cluster) stream(t *testing.T) (s stream) {
	t.Helper()
	dir := t.TempDir()
	signatures, out := filepath.Join(dir, "signatures.json"), filepath.Join(dir, "documents.json")
	for _, args := range [][]string{
		{"--key", c.Path("operator", "second.key"), "--sign-only", signatures, "--offline"},
		{"--key", c.Path("operator", "signing.key"), "--with", signatures, "--out", out},
	} {
		if _, err := c.florctl(t, append([]string{"publish"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range bytes.Split(bytes.TrimSpace(kit.ReadFile(out)), []byte("\n")) {
		var h archive.StreamHost
		into := any(&h)
		if i == 0 {
			into = &s.head
		}
		if err := json.Unmarshal(line, into); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			s.hosts = append(s.hosts, h)
		}
	}
	return s
}

// send sends a request to the control API of provider p, without florctl's checks.
func (c *cluster) send(ctx context.Context, path string, body []byte) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, "flor-provider"), "control", "POST", path, "--settings", filepath.Join(c.p.Dir, "provider.hujson"))
	var problem bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(body), &problem
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, problem.String())
	}
	return nil
}
