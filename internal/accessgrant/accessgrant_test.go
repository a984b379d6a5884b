package accessgrant_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

var (
	alice, leo, kim = kit.ID("user/alice"), kit.ID("user/leo"), kit.ID("user/kim")
	wiki            = kit.ID("service/wiki")
	leoKey, kimKey  = kit.NewHostKey(), kit.NewHostKey()
	at              = time.Unix(2000000000, 0)
	manifest        = document.Manifest{
		Cluster: "demo",
		Requests: map[string]document.Request{"oncall": {Most: 4, Approvers: []document.Approver{
			kit.Approver(alice, kit.NewHostKey()), kit.Approver(kim, kimKey), kit.Approver(leo, leoKey),
		}}},
	}
)

const one, two = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

// grant returns a grant of two hours for alice, changed by some functions.
func grant(change ...func(*accessgrant.Grant)) accessgrant.Grant {
	g := accessgrant.Grant{ID: one, Role: "oncall", User: alice, From: unixtime.Of(at), Until: unixtime.Of(at.Add(2 * time.Hour)), By: leo}
	for _, c := range change {
		c(&g)
	}
	return g
}

func ends(g *accessgrant.Grant) { g.Ends = true }

// TestVerify checks that a host accepts a grant only if an approver in its manifest signed it.
func TestVerify(t *testing.T) {
	good := kit.SignGrant(grant(), leoKey)
	forged := good
	forged.Grant = strings.Replace(forged.Grant, "oncall", "admins", 1)
	longer := good
	longer.Grant = kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Until = unixtime.Of(at.Add(3 * time.Hour)) }), leoKey).Grant
	nix := good
	nix.Signature = "demo-1:AAAA"
	own, touched, touchedToo, untouched := kit.NewHostKey(), kit.NewSecurityKey(), kit.NewECDSASecurityKey(), kit.NewSecurityKey()
	untouched.Untouched = true
	requests := map[string]document.Request{"oncall": {Most: 4, Approvers: append([]document.Approver{kit.Approver(alice, own)}, manifest.Requests["oncall"].Approvers[1:]...)}}
	for _, key := range []ssh.Signer{touched, touchedToo, untouched} {
		a := &requests["oncall"].Approvers[2]
		a.Keys = append(slices.Clone(a.Keys), kit.Authorized(key.PublicKey()))
	}
	for name, x := range map[string]struct {
		signed accessgrant.Signed
		want   string // part of the error; empty if accepted
	}{
		"a grant":              {good, ""},
		"by another approver":  {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.By = kim }), kimKey), ""},
		"by a security key":    {kit.SignGrant(grant(), touched), ""},
		"by one of ECDSA":      {kit.SignGrant(grant(), touchedToo), ""},
		"by one not touched":   {kit.SignGrant(grant(), untouched), "signed with none of the keys of user/leo"},
		"the longest":          {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Until = unixtime.Of(at.Add(4 * time.Hour)) }), leoKey), ""},
		"longer than most":     {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Until = unixtime.Of(at.Add(4*time.Hour + time.Second)) }), leoKey), "want at most the 4h"},
		"another role":         {forged, "nobody may request role"},
		"a changed end":        {longer, "signed with none of the keys of user/leo"},
		"key of nobody":        {kit.SignGrant(grant(), kit.NewHostKey()), "signed with none of the keys of user/leo"},
		"key of another":       {kit.SignGrant(grant(), kimKey), "signed with none of the keys of user/leo"},
		"no approver":          {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.By = kit.ID("user/eve") }), leoKey), "is no approver"},
		"of one's own":         {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.By = alice }), own), "approved a request of their own"},
		"end by oneself":       {kit.SignGrant(grant(ends, func(g *accessgrant.Grant) { g.By = alice }), own), ""},
		"another cluster":      {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Cluster = "blue" }), leoKey), `is of cluster "blue"`},
		"another schema":       {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Schema = "florete.access-grant/v2" }), leoKey), "schema"},
		"for a service":        {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.User = wiki }), leoKey), "two users"},
		"ends before it began": {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.Until = g.From }), leoKey), "a time after its beginning"},
		"odd ID":               {kit.SignGrant(grant(func(g *accessgrant.Grant) { g.ID = "../x" }), leoKey), "32 hex digits"},
		"odd signature":        {nix, "signature"},
		"unknown attribute":    {accessgrant.Signed{Grant: strings.Replace(good.Grant, "{", `{"root":true,`, 1), Signature: good.Signature}, "root"},
		"too long":             {accessgrant.Signed{Grant: good.Grant, Signature: strings.Repeat("x", accessgrant.MaxSize)}, "bytes"},
	} {
		g, err := x.signed.Verify("demo", requests)
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: got %+v, %v, want %q", name, g, err, x.want)
		}
	}
}

// TestInForce checks when a grant is in force: between its times, while neither its user nor its
// approver is revoked, and never again once it is over.
func TestInForce(t *testing.T) {
	good := kit.SignGrant(grant(), leoKey)
	held, refused := accessgrant.Held{}.Merge(manifest, []accessgrant.Signed{good, kit.SignGrant(grant(func(g *accessgrant.Grant) { g.ID = two }), kit.NewHostKey())}, at)
	if len(refused) != 1 || len(held.Grants) != 1 {
		t.Fatalf("got %+v, %v", held, refused)
	}
	revoked := func(what ...revocation.Target) *trust.Revocations {
		list, err := kit.Revocations(1, kit.SigningKey("demo-1"), what...).Open()
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	without := manifest
	without.Requests = map[string]document.Request{"oncall": {Most: 4, Approvers: manifest.Requests["oncall"].Approvers[:2]}}
	shorter := manifest
	shorter.Requests = map[string]document.Request{"oncall": {Most: 1, Approvers: manifest.Requests["oncall"].Approvers}}
	end := at.Add(2 * time.Hour)
	ended, _ := held.Merge(manifest, []accessgrant.Signed{kit.SignGrant(grant(ends, func(g *accessgrant.Grant) { g.By = kim }), kimKey)}, at)
	offeredAgain, _ := ended.Merge(manifest, []accessgrant.Signed{good}, at)
	late, _ := held.Merge(manifest, nil, end)
	setBack, _ := late.Merge(manifest, []accessgrant.Signed{good}, at)
	lost, _ := accessgrant.Held{Lost: unixtime.Of(at)}.Merge(manifest, []accessgrant.Signed{good}, at)
	renewed, _ := accessgrant.Held{Lost: unixtime.Of(at.Add(-time.Second))}.Merge(manifest, []accessgrant.Signed{good}, at)
	foreign, _ := held.Merge(manifest, []accessgrant.Signed{kit.SignGrant(grant(ends), kit.NewHostKey())}, at)
	for name, x := range map[string]struct {
		held accessgrant.Held
		m    document.Manifest
		list *trust.Revocations
		now  time.Time
		want bool
	}{
		"at once":                     {held, manifest, nil, at, true},
		"by a clock that is behind":   {held, manifest, nil, at.Add(-accessgrant.Ahead), true},
		"too early":                   {held, manifest, nil, at.Add(-accessgrant.Ahead - time.Second), false},
		"just before its end":         {held, manifest, nil, end.Add(-time.Second), true},
		"at its end":                  {held, manifest, nil, end, false},
		"user revoked":                {held, manifest, revoked(revocation.Target{ID: alice}), at, false},
		"approver revoked":            {held, manifest, revoked(revocation.Target{ID: leo}), at, false},
		"another revoked":             {held, manifest, revoked(revocation.Target{ID: kim}), at, true},
		"approver no longer listed":   {held, without, nil, at, false},
		"now too long":                {held, shorter, nil, at, false},
		"role not requestable":        {held, document.Manifest{Cluster: "demo"}, nil, at, false},
		"ended early":                 {ended, manifest, nil, at, false},
		"ended, and offered again":    {offeredAgain, manifest, nil, at, false},
		"over, and beside the grants": {accessgrant.Held{Grants: held.Grants, Over: ended.Over}, manifest, nil, at, false},
		"ended, without who did":      {ended, without, nil, at, false},
		"over, and the clock back":    {setBack, manifest, nil, at, false},
		"before the host lost others": {lost, manifest, nil, at, false},
		"after the host lost others":  {renewed, manifest, nil, at, true},
		"ended by a key of nobody":    {foreign, manifest, nil, at, true},
	} {
		path := filepath.Join(t.TempDir(), "grants")
		if err := atomicfile.File(path, x.held.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := accessgrant.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := read.InForce(x.m, x.list, x.now); (len(got) == 1) != x.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if forgotten, _ := late.Merge(manifest, nil, end.Add(31*24*time.Hour)); len(forgotten.Over) > 0 {
		t.Errorf("a month later: %+v", forgotten)
	}
}

// TestApply checks that a grant gives what the manifest has for its user and role, until its end,
// and that the manifest itself does not change.
func TestApply(t *testing.T) {
	bob, shell := kit.ID("user/bob"), kit.ID("service/shell")
	f := document.Forwarder{
		Publish: []document.Published{
			{ID: wiki, Allow: make([]document.Allow, 0, 4), Latent: []document.Latent{{ID: alice, Role: "admins"}, {ID: alice, Role: "oncall"}, {ID: bob, Role: "oncall"}}},
			{ID: shell, Allow: []document.Allow{{ID: alice}}, Latent: []document.Latent{{ID: alice, Role: "oncall", Logins: []string{"root"}}}},
		},
		Reach: []document.Reachable{{ID: wiki, Callers: []spiffe.ID{leo}, Latent: []spiffe.ID{alice}}},
	}
	before := string(kit.JSON(f))
	end := unixtime.Of(at.Add(time.Hour))
	with := accessgrant.Apply(f, []accessgrant.Grant{grant(func(g *accessgrant.Grant) { g.Until = end }), grant(func(g *accessgrant.Grant) { g.Until = unixtime.Of(at) })})
	want := map[string]string{
		string(kit.JSON(with.Publish[0].Allow)): string(kit.JSON([]document.Allow{{ID: alice, Until: end}})),
		string(kit.JSON(with.Publish[1].Allow)): string(kit.JSON([]document.Allow{{ID: alice}, {ID: alice, Until: end, Logins: []document.Login{{Account: "root", Until: end}}}})),
		string(kit.JSON(with.Reach[0].Callers)): string(kit.JSON([]spiffe.ID{alice, leo})),
	}
	for got, want := range want {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if after := string(kit.JSON(f)); after != before || len(f.Publish[0].Allow[:1:1]) == 1 && !f.Publish[0].Allow[:1][0].ID.IsZero() {
		t.Errorf("changed to %s", after)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(kit.SignGrant(grant(), leoKey).Grant)
	f.Fuzz(func(t *testing.T, text string) {
		g, err := accessgrant.Signed{Grant: text}.Open()
		if err != nil {
			return
		}
		again, err := accessgrant.Signed{Grant: g.Encode()}.Open()
		if err != nil || again.Encode() != g.Encode() {
			t.Errorf("%s: read again as %+v, %v", text, again, err)
		}
	})
}
