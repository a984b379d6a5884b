package trust_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
)

// TestRevoked checks that verification refuses revoked certificates, and certificates that a
// revoked node requested.
func TestRevoked(t *testing.T) {
	authority, key := kit.NewCA(), kit.SigningKey("demo-1")
	now := time.Now()
	issue := func(id, node string, at time.Time) []*x509.Certificate {
		leaf, err := authority.Issuing.Issue(ca.SVID{ID: kit.ID(id), Node: node, Key: kit.NewKey().Public(), Until: now.Add(time.Hour)}, at)
		if err != nil {
			t.Fatal(err)
		}
		return []*x509.Certificate{leaf, authority.Issuing.Certificate}
	}
	early := now.Add(-time.Minute)
	alice, wiki := issue("user/alice", "elm", early), issue("service/wiki", "oak", early)
	elm, scoped := issue("node/elm", "elm", early), issue("service/elm/backup", "elm", early)
	verify := func(s trust.SignedRevocations, chain []*x509.Certificate) error {
		list, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = authority.Roots().With(list).Verify(chain, time.Now(), x509.ExtKeyUsageClientAuth)
		return err
	}
	for name, x := range map[string]struct {
		target revocation.Target
		chain  []*x509.Certificate
		want   string // empty if accepted
	}{
		"another":                          {revocation.Target{ID: kit.ID("user/bob")}, alice, ""},
		"itself":                           {revocation.Target{ID: kit.ID("user/alice")}, alice, "user/alice is revoked, by revocation list 7"},
		"the node":                         {revocation.Target{ID: kit.ID("node/elm")}, elm, "node/elm is revoked"},
		"scoped to a revoked node":         {revocation.Target{ID: kit.ID("node/elm")}, scoped, "node/elm, which was given service/elm/backup, is revoked"},
		"given to a revoked node":          {revocation.Target{ID: kit.ID("node/elm")}, alice, "node/elm, which was given user/alice, is revoked"},
		"given to another":                 {revocation.Target{ID: kit.ID("node/elm")}, wiki, ""},
		"the same identity on another":     {revocation.Target{ID: kit.ID("node/elm")}, issue("user/alice", "oak", early), ""},
		"by serial number":                 {revocation.Target{Certificates: []string{trust.SerialNumber(wiki[0])}}, wiki, "certificate " + trust.SerialNumber(wiki[0])},
		"by that of the issuer":            {revocation.Target{Certificates: []string{trust.SerialNumber(wiki[1])}}, wiki, "certificate " + trust.SerialNumber(wiki[1])},
		"issued before":                    {revocation.Target{Before: []spiffe.ID{kit.ID("node/elm")}}, elm, "where it was issued before"},
		"issued after":                     {revocation.Target{Before: []spiffe.ID{kit.ID("node/elm")}}, issue("node/elm", "elm", now.Add(10*time.Second)), ""},
		"issued after, and wholly":         {revocation.Target{ID: kit.ID("node/elm"), Before: []spiffe.ID{kit.ID("node/elm")}}, issue("node/elm", "elm", now.Add(10*time.Second)), "node/elm is revoked"},
		"a key, which is no certificate's": {revocation.Target{Keys: []string{"SHA256:x"}}, elm, ""},
	} {
		err := verify(kit.Revocations(7, key, x.target), x.chain)
		var revoked *trust.RevokedError
		if (err == nil) != (x.want == "") || err != nil && (!errors.As(err, &revoked) || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: got %v, want %q", name, err, x.want)
		}
	}
	const want = "node/elm is suspended, by revocation list 7: florctl unsuspend"
	if err := verify(kit.Suspensions(7, key, kit.ID("node/elm")), issue("node/elm", "elm", now)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reinstated, reissued, suspended: got %v, want %q", err, want)
	}
}

// TestSuspended checks an identity that was reinstated, received a new certificate, and was then
// suspended. It must be refused until the suspension ends.
func TestSuspended(t *testing.T) {
	key, elm, alice := kit.SigningKey("demo-1"), kit.ID("node/elm"), kit.ID("user/alice")
	list, err := kit.Suspensions(7, key, elm).Open()
	if err != nil {
		t.Fatal(err)
	}
	const want = "suspended, by revocation list 7: florctl unsuspend"
	for what, err := range map[string]error{
		"of it, whenever":       list.CheckID(elm),
		"issued since":          list.CheckIssued(elm, "elm", time.Now()),
		"given to it since":     list.CheckIssued(alice, "elm", time.Now()),
		"issued before, by now": list.CheckIssued(elm, "elm", time.Now().Add(-48*time.Hour)),
	} {
		var revoked *trust.RevokedError
		if !errors.As(err, &revoked) || !revoked.Suspended || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	next := revocation.Next(list, "demo", time.Now(), time.Hour)
	if err := revocation.Unsuspend(next, elm); err != nil {
		t.Fatal(err)
	}
	s, err := revocation.Sign(next, key)
	if err != nil {
		t.Fatal(err)
	}
	if list, err = s.Open(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(list.CheckID(elm), list.CheckIssued(elm, "elm", time.Now())); err != nil {
		t.Errorf("resumed: %v", err)
	}
	if list.CheckIssued(elm, "elm", time.Now().Add(-48*time.Hour)) == nil {
		t.Error("resumed: what was revoked before is good again")
	}
}

// TestRevocationsSigned checks that a revocation list is accepted only if it is of the same cluster
// and signed by a pinned key. The error for a list of a newer format must be a NewerFormatError.
func TestRevocationsSigned(t *testing.T) {
	key, other := kit.SigningKey("demo-1"), kit.SigningKey("demo-2")
	s := kit.Revocations(3, key, revocation.Target{ID: kit.ID("node/elm"), Keys: []string{"SHA256:x"}})
	list, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if list.CheckKey("SHA256:x") == nil || list.CheckKey("SHA256:y") != nil {
		t.Error("keys")
	}
	pins := signers.Any(key.ToPublicKey().String())
	if err := s.Verify(list, "demo", pins); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"is of cluster":                     s.Verify(list, "test", pins),
		"does not verify with any pinned":   s.Verify(list, "demo", signers.Any(other.ToPublicKey().String())),
		"list 3: not signed":                trust.SignedRevocations{List: s.List}.Verify(list, "demo", pins),
		`signature by "demo-1" does not`:    trust.SignedRevocations{List: s.List + " ", Signature: s.Signature}.Verify(list, "demo", pins),
		"has format 1.9":                    opens(strings.Replace(s.List, `"format":"1.0"`, `"format":"1.9"`, 1)),
		`unknown field "x"`:                 opens(strings.Replace(s.List, `{`, `{"x":1,`, 1)),
		"number 0":                          opens(strings.Replace(s.List, `"number":3`, `"number":0`, 1)),
		"want at most 131072":               opens(s.List + strings.Repeat(" ", trust.MaxRevocations)),
		"given twice":                       opens(strings.Replace(s.List, `"entries":[`, `"entries":[{"id":"spiffe://demo.flor/node/elm","validAfter":0},`, 1)),
		"schema \"florete.envelope/v1\", n": opens(strings.Replace(s.List, trust.RevocationsSchema, document.EnvelopeSchema, 1)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func opens(list string) error {
	_, err := trust.SignedRevocations{List: list}.Open()
	return err
}

// TestReadRevocations checks that an unchanged file is not decoded again, and that a missing file
// stands for no list.
func TestReadRevocations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "revocations.json")
	if list, err := trust.ReadRevocations(path, nil); list != nil || err != nil {
		t.Errorf("got %v, %v", list, err)
	}
	kit.WriteRevocations(path, kit.Revocations(1, kit.SigningKey("demo-1")))
	first, err := trust.ReadRevocations(path, nil)
	if err != nil || first.InForce() != 1 {
		t.Fatal(first, err)
	}
	if again, err := trust.ReadRevocations(path, first); again != first || err != nil {
		t.Errorf("got another, %v", err)
	}
	if late := first.Reported().Overdue(time.Now()); late != 0 {
		t.Errorf("overdue %s", late)
	}
	if late := first.Reported().Overdue(time.Now().Add(revocation.Lifetime + time.Hour)); late < 59*time.Minute {
		t.Errorf("overdue %s", late)
	}
}

// TestNextList checks that a new list no longer contains entries that were revoked long ago and
// then reinstated, but still contains revoked ones.
func TestNextList(t *testing.T) {
	now := time.Now()
	list := revocation.Next(nil, "demo", now, time.Hour)
	revocation.Revoke(list, revocation.Target{ID: kit.ID("user/alice")})
	revocation.Revoke(list, revocation.Target{ID: kit.ID("node/elm"), Keys: []string{"SHA256:elm"}})
	revocation.Revoke(list, revocation.Target{Certificates: []string{"ab"}, Keys: []string{"SHA256:x"}})
	second := revocation.Next(list, "demo", now, time.Hour)
	for _, bad := range []revocation.Target{{ID: kit.ID("user/bob")}, {Keys: []string{"SHA256:y"}}, {Certificates: []string{"cd"}}} {
		if err := revocation.Reinstate(second, bad); err == nil || !strings.Contains(err.Error(), "is not revoked: florctl revocations") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := revocation.Reinstate(second, revocation.Target{ID: kit.ID("user/alice"), Certificates: []string{"ab"}}); err != nil {
		t.Error(err)
	}
	if err := revocation.Reinstate(second, revocation.Target{Keys: []string{"SHA256:x"}}); err != nil {
		t.Error(err)
	}
	if second.Number != 2 || len(second.Entries) != 2 || second.Entries[1].ValidAfter.IsZero() || len(second.Certificates) != 0 || len(list.Entries) != 3 {
		t.Errorf("got %+v, before it %+v", second, list)
	}
	third := revocation.Next(second, "demo", now.Add(trust.MaxLifetime+time.Hour), time.Hour)
	if len(third.Entries) != 1 || third.Entries[0].ID != kit.ID("node/elm") || third.Entries[0].EnrolKeyFingerprints[0] != "SHA256:elm" {
		t.Errorf("got %+v", third.Entries)
	}
}

// TestRevokedCertificateLasts checks that a certificate stays revoked for the longest lifetime of a
// CA certificate. If the certificate is revoked again, a shorter entry must be extended to this
// time.
func TestRevokedCertificateLasts(t *testing.T) {
	now := time.Now()
	list := revocation.Next(nil, "demo", now, time.Hour)
	list.Certificates = []trust.RevokedCertificate{{Serial: "ab", Until: unixtime.Of(now.Add(trust.MaxLifetime))}}
	revocation.Revoke(list, revocation.Target{Certificates: []string{"cd", "ab"}})
	for after, want := range map[time.Duration]int{
		trust.MaxLifetime + 24*time.Hour:  2,
		ca.IssuingLifetime + 24*time.Hour: 2,
		ca.RootLifetime - time.Hour:       2,
		ca.RootLifetime + trust.Backdated: 0,
	} {
		if got := revocation.Next(list, "demo", now.Add(after), time.Hour).Certificates; len(got) != want {
			t.Errorf("after %s: got %+v, want %d", after, got, want)
		}
	}
}

// TestRevocationsVector checks the signed bytes of a revocation list, and their meaning, against
// the test vector.
func TestRevocationsVector(t *testing.T) {
	var v struct {
		Key, Text string
		Signed    trust.SignedRevocations
	}
	if err := json.Unmarshal(kit.ReadFile("../../tests/golden/wire/provider/revocations.json"), &v); err != nil {
		t.Fatal(err)
	}
	list, err := v.Signed.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Signed.Verify(list, "demo", signers.Any(v.Key)); err != nil || trust.RevocationsText(v.Signed.List) != v.Text {
		t.Errorf("%v, over %q", err, trust.RevocationsText(v.Signed.List))
	}
	if got := string(kit.JSON(list)); got != v.Signed.List {
		t.Errorf("written as %s, want %s", got, v.Signed.List)
	}
	if list.Number != 16 || len(list.Entries) != 3 || !list.Entries[1].ValidAfter.IsZero() || list.Entries[2].ValidAfter.Unix() != 1784011430 || list.Certificates[0].Serial != "3f9a01" {
		t.Errorf("got %+v", list)
	}
}

func FuzzRevocations(f *testing.F) {
	f.Add(kit.Revocations(1, kit.SigningKey("demo-1"), revocation.Target{ID: kit.ID("node/elm"), Keys: []string{"SHA256:x"}, Certificates: []string{"ab"}}).List)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := trust.SignedRevocations{List: text}.Open()
		if err != nil {
			return
		}
		again, err := trust.SignedRevocations{List: string(kit.JSON(list))}.Open()
		if err != nil || string(kit.JSON(again)) != string(kit.JSON(list)) {
			t.Errorf("%s: read again as %+v, %v", text, again, err)
		}
	})
}
