package laws

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/ca"
)

// authorities returns authorities of the trust domain laws.flor. Their texts contain nothing that
// looks like a generated name.
var authorities = sync.OnceValue(func() (a struct {
	root, next *ca.Authority // two roots
	issuing    *ca.Authority // issued by the first
}) {
	root := func() *ca.Authority {
		for {
			r := must(ca.NewRoot("laws.flor", time.Now()))
			if !mention.Match(ca.EncodeCertificates(r.Certificate)) {
				return r
			}
		}
	}
	a.root, a.next = root(), root()
	key := must(ca.NewKey())
	csr := must(ca.NewIssuingCSR("laws.flor", key))
	a.issuing = &ca.Authority{Certificate: must(a.root.SignIssuing(csr, ca.IssuingLifetime, time.Now())), Key: key}
	return a
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// roots returns lists of roots of laws.flor, in different forms.
func roots() [][]string {
	first, next := pemOf(authorities().root), pemOf(authorities().next)
	return [][]string{{first}, {first, next}, {first + next}, {"# ours\n" + first + "\n# the next\n" + next}}
}

func pemOf(a *ca.Authority) string { return string(ca.EncodeCertificates(a.Certificate)) }

// hostKeys returns SSH host keys of every type.
var hostKeys = sync.OnceValue(func() (lines []string) {
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	keys := []any{must(ed, err), &must(rsa.GenerateKey(rand.Reader, 2048)).PublicKey, &must(rsa.GenerateKey(rand.Reader, 3072)).PublicKey}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		keys = append(keys, &must(ecdsa.GenerateKey(curve, rand.Reader)).PublicKey)
	}
	for _, k := range keys {
		lines = append(lines, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(must(ssh.NewPublicKey(k))))))
	}
	return lines
})

// odd returns values at a bound, beyond it, or of an unusual form, by the place where they are
// written. The compiler may refuse any of them.
func odd() map[string][]any {
	long := func(n int) string { return strings.Repeat("x", n) }
	urls := []any{}
	for _, u := range []string{
		"https://a.example", "http://a.example:8080", "https://A.example", "https://a_b.example", "https://192.0.2.1", "https://[2001:db8::1]:8443",
		"https://a.example/", "https://a.example/realm", "https://a.example?x=%zz", "https://a.example/%zz", "https://a.example/%", "https://a.example/%41",
		"https://a.example:", "https://a.example:0", "https://a.example:65536", "https://a:b:c", "https://]", "https://[", "https://[::1", "https://[1:::2]", "http://:80", "https://",
		"https://a.example/\u0001", "https://a.example/\u007f", "https://a.example/é", "https://a.example/a b", "https://a.example/<>", "https://a.example/#top", "ftp://a.example", "//a.example",
		"https://a.example/" + long(982), "https://a.example/" + long(983), "https://" + long(300) + ".example",
	} {
		urls = append(urls, u)
	}
	callbacks := []any{[]string{}}
	for _, u := range urls {
		callbacks = append(callbacks, []any{u})
	}
	for _, n := range []int{1, 32, 33, 70} {
		many := []string{}
		for i := range n {
			many = append(many, fmt.Sprintf("https://a.example/%d/%s", i, long(979)))
		}
		callbacks = append(callbacks, many)
	}
	var certificates, keys []any
	first := pemOf(authorities().root)
	for _, texts := range roots() {
		certificates = append(certificates, texts)
	}
	for _, text := range []string{
		strings.ReplaceAll(first, "CERTIFICATE", "TRUSTED CERTIFICATE"), first + "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
		strings.Replace(first, "-----END", "-----EMD", 1), first[:len(first)/2], "-----BEGIN CERTIFICATE-----", strings.Replace(first, "M", "N", 1),
		first + strings.ReplaceAll(first, "CERTIFICATE", "certificate"), "-----BEGIN CERTIFICATE-----\nbGF3cw==\n-----END CERTIFICATE-----\n",
	} {
		certificates = append(certificates, []string{text})
	}
	for _, line := range hostKeys() {
		kind, text, _ := strings.Cut(line, " ")
		for _, l := range []string{line, line + " comment", line + "\n", line[:len(line)-4], line + "AAAA", line[:len(line)-1] + "=", kind + " " + text[:30] + "Z" + text[31:],
			"ssh-rsa " + text, "ssh-ed25519 " + text, "ecdsa-sha2-nistp256 " + text} {
			keys = append(keys, l)
		}
	}
	var foreign []any
	for _, change := range []func(*federated){
		func(*federated) {},
		func(f *federated) { f.Bundle = `{"keys" "x509-svid"` },
		func(f *federated) { f.Bundle = `{"keys":[{"use":"x509-svid"}]}` },
		func(f *federated) { f.Bundle = "" },
		func(f *federated) { f.Endpoint = "http://blue.example/" },
		func(f *federated) { f.Endpoint = "https://u:p@blue.example/" },
		func(f *federated) { f.Endpoint = "https://[2001:db8::1]:65535/b?c=d" },
		func(f *federated) { f.Endpoint = "https://blue.example/" + long(973) },
		func(f *federated) { f.EndpointID = "spiffe://blue.example/" + long(2000) },
		func(f *federated) { f.EndpointID = "spiffe://blue.example/" + long(2100) },
		func(f *federated) { f.EndpointID = "spiffe://blue.example" },
		func(f *federated) { f.EndpointID = "spiffe://blue.example/a/../b" },
		func(f *federated) { f.EndpointID = "spiffe://blue.example/.a/Ab_c" },
		func(f *federated) { f.EndpointID = "spiffe://blue.example/a/" },
		func(f *federated) { f.EndpointID = "spiffe://green.example/a" },
		func(f *federated) { f.TrustDomain = "blue_example" },
		func(f *federated) { f.Identities = map[string]*holder{"user/" + long(63): {Roles: []string{"r"}}} },
		func(f *federated) { f.Identities = map[string]*holder{"user/" + long(64): {Roles: []string{"r"}}} },
		func(f *federated) { f.Identities = map[string]*holder{"vertex/a": {Roles: []string{"r"}}} },
		func(f *federated) { f.Identities = map[string]*holder{"service/a/b/c": {Roles: []string{"r"}}} },
		func(f *federated) { f.Identities = map[string]*holder{"user/a/b": {Roles: []string{"r"}}} },
	} {
		f := newFederated()
		f.Identities["service/a/b"] = &holder{Roles: []string{"r"}}
		change(f)
		foreign = append(foreign, map[string]any{"blue": f}, map[string]any{long(52): f})
	}
	foreign = append(foreign, map[string]any{long(53): newFederated()})
	var others []any
	for _, e := range []elsewhere{
		{},
		{Services: map[string]*foreignService{"a/c": {Address: []string{"gate.example:4610", "[2001:db8::1]:65535"}, Port: 65535, Protocol: "udp", Roles: []string{"r"}}}},
		{Services: map[string]*foreignService{long(63): {Address: []string{"192.0.2.1:4610"}, Port: 1, Roles: []string{"r"}}}},
		{Services: map[string]*foreignService{long(64): {Address: []string{"192.0.2.1:4610"}, Port: 1, Roles: []string{"r"}}}},
		{Services: map[string]*foreignService{"c": {Address: []string{"192.0.2.1"}, Port: 1, Roles: []string{"r"}}}},
		{Services: map[string]*foreignService{"c": {Address: []string{"192.0.2.1:4610"}, Port: 65536, Roles: []string{"r"}}}},
		{Identities: map[string]*holder{"user/" + long(63): {Roles: []string{"r"}}, "service/h/c": {Roles: []string{"r"}}}},
		{Identities: map[string]*holder{"user/" + long(64): {Roles: []string{"r"}}}},
		{Identities: map[string]*holder{"node/a": {Roles: []string{"r"}}}},
	} {
		others = append(others, map[string]any{"blue": e}, map[string]any{long(63): e})
	}
	others = append(others, map[string]any{long(64): elsewhere{}})
	ports := []any{-1, 0, 1, 65535, 65536, 70000}
	return map[string][]any{
		"name":                         {"laws", long(63), long(64), "a.b", "A"},
		"trustDomain":                  {"laws.flor", "laws", "LAWS", "a_b", long(63) + "." + long(63), long(64), "10.0.0.1", "10.0.0.300", strings.Repeat("abcdefghi.", 17) + "flor", strings.Repeat("abcdefghi.", 18) + "flor"},
		"serial":                       {0, 1, 9007199254740991, 9007199254740992, -1},
		"rev":                          {"", "é\u0001\u2028", long(5000)},
		"trust.roots":                  certificates,
		"trust.signingKeys":            {[]string{}, []string{"a:b"}, []string{"laws-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM="}, []string{"laws-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBN="}, []string{"laws-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM=\n"}, []string{"é:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM="}},
		"trust.threshold":              {0, 1, 2, 16, 17},
		"providers.cert.lifetime":      {0, 9, 10, 86400, 7776000, 7776001, 31536000},
		"providers.config.interval":    {0, 1, 86399, 86400, 315360000, 315360001},
		"providers.config.staleAfter":  {1, 901, 315360000, 315360001},
		"providers.oidc.issuer":        urls,
		"providers.jwt.issuer":         urls,
		"providers.jwt.generation":     {0, 1, 1000000, 1000001},
		"providers.ssh.generation":     {0, 1, 1000000, 1000001},
		"providers.ssh.lifetime":       {299, 300, 86400, 86401},
		"roles.r.logins.shell":         {[]string{}, []string{"root"}, []string{"a b"}, []string{"é"}, []string{long(32)}, []string{long(33)}, []string{"a/b"}, []string{"florete"}, []string{"-a"}, []string{"a\nb"}, []string{"a", "a"}},
		"federated":                    foreign,
		"clusters":                     others,
		"providers.federation.refresh": {0, 1, 86400, 86401},
		"providers.store": {map[string]any{"kind": "etcd", "hosts": []string{"a"}, "keyLifetime": 3650}, map[string]any{"kind": "etcd", "hosts": []string{"a"}, "port": 65535}, map[string]any{"kind": "etcd", "hosts": []string{"a"}, "from": []string{"a", "a"}}, map[string]any{"from": []string{"a"}},
			map[string]any{"kind": "etcd"}, map[string]any{"hosts": []string{"a"}}, map[string]any{"kind": "sqlite"}},
		"hosts.a.sshHostKey":    keys,
		"hosts.a.address":       {"192.0.2.1", "192.0.2.1:70000", "192.0.2.1:65535", "192.0.2.1:0", "2001:db8::1", "::ffff:192.0.2.1", "fe80::1%eth0", "1:2:3:4:5:6:7::", "a.example", "a..example", long(63) + ".example", long(64) + ".example", ""},
		"hosts.a.bind":          {"0.0.0.0", "::", "192.0.2.1", "a.example", "::1"},
		"hosts.a.networks":      {map[string]any{"lan": "10.0.0.1:99999"}, map[string]any{"lan": []string{}}, map[string]any{"lan": "10.0.0.1:4711"}},
		"hosts.a.forwarderPort": ports,
		"hosts.a.providerPort":  ports,
		"hosts.a.loopback":      {"127.64.0.0/10", "127.0.0.0/8", "127.1.1.0/30", "127.1.1.0/31", "127.300.0.0/16", "10.0.0.0/8"},
		"hosts.a.callers":       {map[string]any{"node": []any{0, 4294967294}}, map[string]any{"node": []any{4294967295}}, map[string]any{"vertex/x": []any{1}}, map[string]any{"service/s": []any{1}}},
		"hosts.a.instance":      {"blue", long(14), long(15)},
		"services.s.port":       ports,
		"services.s.listenPort": ports,
		"services.q": {several(map[string]any{long(63): 80}), several(map[string]any{long(64): 80}), several(map[string]any{"a": 65535, "b": 65536}), several(map[string]any{"a": "80"}),
			several(map[string]any{"a": map[string]any{"port": 1, "protocol": []string{}}}), several(map[string]any{"a": map[string]any{"port": 53, "protocol": []string{"udp", "tcp"}}}),
			several(map[string]any{"a-": 1}), several(map[string]any{"a": map[string]any{"upstream": "unix:/" + long(106), "listenPort": 1, "protocol": "udp"}})},
		"services.s.upstream": {"unix:/" + long(106), "unix:/" + long(107), "unix:/" + long(108), "unix:relative", "192.0.2.1:65536", "192.0.2.1:65535", "[::1]:80", "[::1:80", "a.example:99999", "localhost:1"},
		"services.shell.record": {map[string]any{"recipients": ageKeys}, map[string]any{"recipients": ageKeys, "days": 1}, map[string]any{"recipients": ageKeys, "days": 3650}, map[string]any{"recipients": ageKeys, "days": 3651},
			map[string]any{"recipients": ageKeys, "days": 0}, map[string]any{"recipients": []string{}}, map[string]any{"days": 1}, map[string]any{"recipients": []string{ageKeys[0], ageKeys[0]}}, map[string]any{"recipients": []string{ageKeys[0] + "\n"}},
			map[string]any{"recipients": []string{strings.ToUpper(ageKeys[0])}}, map[string]any{"recipients": []string{ageKeys[0][:61]}}, map[string]any{"recipients": []string{"age1" + strings.Repeat("q", 58)}}, map[string]any{"recipients": hostKeys()}},
		"services.s.identity":                   {"none", "http", "proxy-v2", "proxy-v1", ""},
		"services.s.files":                      {map[string]any{long(56): map[string]any{"ref": "a"}}, map[string]any{long(57): map[string]any{"ref": "a"}}, map[string]any{".": map[string]any{"ref": "a"}}},
		"services.s.files.f.ref":                {"a", "a/b", "../a", "a//b", "/a", ".", "a/./b", "a/..", long(255), long(256), strings.Repeat("a/", 127) + "a", strings.Repeat("a/", 3000) + "a"},
		"services.s.files.f.mode":               {"0400", "400", "0777", "0644", "04000", "0o400"},
		"services.s.files.f.generation":         {0, 1, 1000000, 1000001},
		"services.s.files.f.dependsOn":          {[]string{"cert-node"}, []string{"nothing"}, []string{"file-s-f"}, []string{"config-documents"}},
		"services.s.files.f.restart":            {"s.service", "s", "reboot.target", long(247) + ".service", long(248) + ".service"},
		"services.s.sso.redirectURIs":           callbacks,
		"services.s.sso.called":                 {"s", "former", "A", "a_b", "", long(50), long(51)},
		"services.s.needs.n.called":             {"s", "former", "A", "a_b", "", long(36), long(37), long(50), long(51)},
		"services.s.sso.generation":             {0, 1, 1000000, 1000001},
		"services.s.sso.postLogoutRedirectURIs": callbacks,
		"services.s.sso.scopes":                 {[]string{}, []string{"groups", "groups"}, []string{"openid"}, []string{"admin"}, []string{"a b"}, []string{long(128)}, []string{long(129)}},
		"services.s.sso.claims":                 {map[string]string{"roles": "groups", "https://example.org/name": "name"}, map[string]string{"sub": "email"}, map[string]string{"roles": "shoe"}, map[string]string{"a b": "name"}, map[string]string{long(128): "name"}, map[string]string{long(129): "name"}, map[string]any{"roles": 1}},
		"services.s.sso.groups":                 {map[string][]string{"editor": {"writers", "staff"}}, map[string][]string{"editor": {}}, map[string][]string{"a,b": {"writers"}}, map[string][]string{"editor": {""}}, map[string]string{"editor": "writers"}},
		"services.s.sso.public":                 {true, "true"},
		"services.s.sso.allowedGroups":          {[]string{"writers"}, []string{""}, []string{long(128)}, []string{long(129)}, []string{"é <b>"}, []string{"a\nb"}, slices.Repeat([]string{"a"}, 32), slices.Repeat([]string{"a"}, 33)},
		"providers.oidc.ldap.corp.server":       {"ldap://[::1]", "ldap://[::1]:389", "ldap://localhost", "ldaps://a:65536", "ldap://a/", "ldap", "ldaps://", "http://a", "ldaps://a@b", "ldap://[::g]"},
		"providers.oidc.ldap.corp.roots":        certificates,
		"providers.oidc.ldap.corp.people":       {map[string]any{"base": ""}, map[string]any{"base": "a", "login": ""}, map[string]any{"base": "é", "filter": "("}, map[string]any{}},
		"providers.oidc":                        {registering("https://127.0.0.1:1/r?x=1"), registering("http://a.example"), registering("http://127.0.0.1:1/r"), registering("http://127.0.0.999/r"), registering("http://127.1/r"), registering("http://[::1]/r"), registering("http://x.rete/r"), registering("http://localhost/r"), registering(""), realm("https://auth.example/realms/a"), realm("https://auth.example/realms/a/"), realm("https://auth.example/?a=b"), realm("https://auth.example/%zz"), realm("https://auth.example:443/a")},
		"providers.oidc.registration":           {"https://127.0.0.1:1/r"},
		"providers.oidc.registrar":              {"kanidm", "pocket-id", "rfc7591", "okta"},
		"providers.oidc.ldap":                   {map[string]any{"local": directory}, map[string]any{long(40): directory}, map[string]any{long(41): directory}, map[string]any{"partner": directory}},
		"providers.oidc.upstream":               {map[string]any{"corp": map[string]any{"issuer": "https://a.example/b", "clientId": "c"}}, map[string]any{"x": map[string]any{"issuer": "http://a.example", "clientId": "c"}}, map[string]any{"x": map[string]any{"issuer": "http://a.rete:1/", "clientId": "c", "scopes": []string{"é"}}}, map[string]any{"x": map[string]any{"issuer": "https://a.example", "clientId": ""}}},
		"services.s.jwtAudiences":               {[]string{}, []string{"a", "a"}, []string{"https://a.example/?x=[1]"}, []string{"a b"}, []string{"é"}, []string{long(255)}, []string{long(256)}, []string{""}, []string{"?"}},
		"secrets.k.generate":                    {"hex", "age", "wireguard", "rot13", ""},
		"secrets.k.length":                      {15, 16, 1024, 1025},
		"secrets.k.rotate":                      {0, 1, 3650, 3651, -1},
		"secrets.k.overlap":                     {59, 60, 43200, 43201},
		"secrets.k.generation":                  {0, 1, 1000000, 1000001},
		"secrets.k.readers":                     {[]any{}, []any{map[string]any{"host": "a"}}, []any{map[string]any{"service": "s", "overlap": true, "mode": "0440"}}, []any{map[string]any{"service": "s", "mode": "0777"}}, []any{map[string]any{}}},
		"secrets." + long(51):                   {map[string]any{"generate": "ssh", "readers": []any{map[string]any{"host": "a"}}}},
		"secrets." + long(52):                   {map[string]any{"generate": "ssh", "readers": []any{map[string]any{"host": "a"}}}},
		"services.s.scope":                      {"both", "node", "all"},
		"services.s.tlsName":                    {"a.example", strings.Repeat("abcdefghi.", 25) + "abc", strings.Repeat("abcdefghi.", 25) + "abcd", "A.example"},
		"services.s.tlsAliases":                 {[]string{"*.a.example", "b.example"}, []string{"*.example"}, []string{"*.*.a.example"}, []string{"*"}, []string{"*.rete"}, []string{"*." + strings.Repeat("abcdefghi.", 25) + "a"}, []string{"a.*.example"}},
		"services.s.aliases":                    {[]string{"a", "*.a"}, []string{"s"}, []string{"*.s"}, []string{long(63), "*." + long(63)}, []string{long(64)}, []string{"*"}, []string{"a.b"}, []string{"florete-control"}, []string{"*.florete-a"}, []string{"a", "a"}, []string{""}},
		"services." + long(50):                  {map[string]any{"host": "a", "port": 1}},
		"services." + long(51):                  {map[string]any{"host": "a", "port": 1}},
		"users." + long(53):                     {map[string]any{}},
		"users." + long(54):                     {map[string]any{}},
		"users.florete_":                        {map[string]any{}},
		"services.s.needs":                      {map[string]any{long(35): ownNeed}, map[string]any{long(53): ownNeed}, map[string]any{long(54): ownNeed}, map[string]any{"N": ownNeed}},
		"services.s.needs.n.request.t":          {"", "a", long(1000), long(1001), "a\nb", "é\u2028<>&\u007f", "\u0001", []string{"a"}, 1, true, 1.5, map[string]any{}},
		"services.s.needs.n.request.i":          {0, -9007199254740991, 9007199254740991, 9007199254740992, "1", 0.5},
		"services.s.needs.n.request.l":          {[]string{}, []string{long(1000)}, []any{1}, []any{[]string{}}, slices.Repeat([]string{"a"}, 32), slices.Repeat([]string{"a"}, 33), slices.Repeat([]string{long(1000)}, 32)},
		"services.s.needs.n.request.b":          {true, "true", 0},
		"services.s.needs.n.request.p":          {"a", "ab", "a]b}c", "a.b*(x)|^$+?{1}\\c", "b"},
		"services.s.needs.n.generation":         {0, 1, 1000000, 1000001},
		"services.s.needs.n.rotate":             {0, 1, 3650, 3651},
		"services.s.needs.n.dependsOn":          {[]string{"mail-s-n"}, []string{"file-s-f"}, []string{"mail-s-m"}},
		"providers.mail.port":                   ports,
		"providers.mail.run":                    {"/a", "a", "/", "/a/", "/a b", "/a/../b", "/" + long(254), "/" + long(255), "/é"},
		"providers.mail.url":                    {"unix:/a", "unix:a", "http://127.0.0.1:80", "http://127.0.0.1:0/", "http://127.0.0.1:65535/a", "http://127.0.0.1:65536/", "http://[::1]:1/a/b", "http://localhost:1/", "https://127.0.0.1:1/", "http://127.0.0.1:1/?a", "unix:/" + long(107), "unix:/" + long(112)},
		"providers.mail.hosts":                  {[]string{}, []string{"a", "a"}},
		"providers.mail.answer":                 {map[string]any{}, map[string]any{"rotation": map[string]any{}}, map[string]any{"a.b": map[string]any{}}, map[string]any{long(63): map[string]any{"mode": "0440"}}, map[string]any{"a": map[string]any{"mode": "0777"}}},
		"providers.mail.request.p.pattern":      {"a*", "*", "**", "***", "a", "", "a.b*(x)|^$+?{1}\\c", "a]b}c", "[", "(", "\\", "é*", "a\nb", long(255), long(256)},
		"providers." + long(14):                 {map[string]any{"hosts": []string{"a"}, "port": 4700, "run": "/a", "answer": map[string]any{"a": map[string]any{}}}},
		"providers." + long(15):                 {map[string]any{"hosts": []string{"a"}, "port": 4700, "run": "/a", "answer": map[string]any{"a": map[string]any{}}}},
		"providers.state":                       {map[string]any{"hosts": []string{"a"}, "port": 4700, "run": "/a", "answer": map[string]any{"a": map[string]any{}}}},
		"tenants.t.lifetime":                    {59, 60, 3600, 3601},
		"tenants.t.quotas":                      {map[string]any{"policies": 0}, map[string]any{"tokensPerMinute": 1}, map[string]any{"groupings": -1}},
		"tenants.t.namespaces":                  {[]any{}, []any{"n", "N"}, []any{"n", long(63)}, []any{"n", long(64)}},
		"tenants.t.issuers.i.subjectClaim":      {"", "email", "a b", long(100), long(101)},
		"tenants.t.issuers.i.issuer":            {"", "https://login.example/x", "ftp://a"},
		"tenants.t.issuers.i.audiences":         {[]any{}, []any{""}, []any{"a", "b"}},
		"tenants.t.policies": {
			oddBy("subject:i/" + long(255)), oddBy("subject:i/" + long(256)), oddBy("subject:i/a]b[c^d\\e'f"), oddBy("subject:i/a,b"), oddBy("subject:i/a\"b"), oddBy("group:i/a b"), oddBy("group:i/!#$%&()*+-./:;<=>?@_`{|}~"), oddBy("role:" + long(63)), oddBy("role:" + long(64)), oddBy("node/a"), oddBy("service/a/s"), oddBy("user/u"), oddBy("user/"), oddBy("*"),
			oddOn("k:t/n/*"), oddOn("namespace:t/*"), oddOn("namespace:t/n/x"), oddOn("tenant:t/n"), oddOn("tenant:t/n/x"), oddOn("k:t/n"), oddOn("k:t/n/x/y"), oddOn("k:t/*/x"), oddOn("k:t/n/.x"), oddOn("k:t/n/" + long(128)), oddOn("k:t/n/" + long(129)), oddOn(long(63) + ":t/n/x"), oddOn("-k:t/n/x"), oddOn("K:t/n/x"),
		},
		"services.s.tokens.k": {map[string]any{"tenant": "t", "requested": []any{"a.b"}, "resources": []any{"k:t/n/x"}}, map[string]any{"tenant": "t", "requested": []any{"a.*"}}, map[string]any{"tenant": "t", "resources": []any{"tenant:*"}}},
	}
}

var directory = map[string]any{"server": "ldaps://a", "people": map[string]any{"base": "a"}}

// registering returns the settings of an external issuer.
func registering(at string) any {
	return map[string]any{"hosts": []string{"a"}, "issuer": "https://auth.example", "registration": at}
}

// realm returns the settings of an external issuer at an address.
func realm(issuer string) any {
	return map[string]any{"hosts": []string{"a"}, "issuer": issuer, "registration": "https://auth.example/r"}
}

var ownNeed = map[string]any{"kind": "mail", "request": map[string]any{"p": "a"}}

const oddBase = `{
  "serial": 1, "name": "laws", "trustDomain": "laws.flor",
  "trust": {"signingKeys": ["laws-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM="]},
  "hosts": {"a": {"address": "192.0.2.1", "users": ["u"]}},
  "users": {"u": {"roles": ["r"]}},
  "services": {"s": {
    "host": "a", "port": 8080, "visibility": "public", "user": "s", "workloadApi": true, "jwtAudiences": ["vault"], "files": {"f": {"ref": "s/f"}},
    "sso": {"mode": "oidc", "redirectURIs": ["https://a.example/callback"]}, "tokens": {"k": {"tenant": "t"}}, "verifies": ["t"],
    "needs": {"n": {"kind": "mail", "request": {"p": "ab"}}}, "databases": {"d": {"on": "pg", "rotate": 1}}, "git": {"g": {"on": "soft", "repositories": ["infra"]}}
  }, "shell": {"host": "a", "port": 22, "protocol": "ssh"}},
  "tenants": {"t": {"namespaces": ["n"], "issuers": {"i": {"issuer": "https://login.example", "audiences": ["x"]}},
    "policies": [{"subject": "service/s", "action": "a.b", "object": "k:t/n/x"}], "groupings": [{"member": "role:a", "role": "role:b"}]}},
  "secrets": {"k": {"generate": "password", "rotate": 1, "readers": [{"service": "s", "overlap": true}, {"host": "a"}]}},
  "roles": {"node": {"serviceGroups": ["control-plane"]}, "operator": {}, "r": {"services": ["s", "shell"], "logins": {"shell": ["deploy"]}}},
  "serviceGroups": {"control-plane": ["s"], "control-plane-write": []},
  "providers": {"cert": {"hosts": ["a"]}, "config": {"hosts": ["a"]}, "file": {"hosts": ["a"]}, "secret": {"hosts": ["a"]}, "oidc": {"hosts": ["a"], "issuer": "https://auth.example",
    "ldap": {"corp": {"server": "ldaps://a", "people": {"base": "a"}, "groups": {"base": "a"}}}}, "federation": {"hosts": ["a"]},
    "database": {"hosts": ["a"], "servers": {"pg": {"service": "s"}, "cache": {"kind": "redis", "service": "s"}}},
    "git": {"hosts": ["a"], "forges": {"soft": {"service": "s"}, "forgejo": {"kind": "forgejo", "service": "s"}}},
    "jwt": {"hosts": ["a"], "issuer": "https://tokens.example"}, "token": {"hosts": ["a"], "issuer": "https://tenants.example"}, "ssh": {"hosts": ["a"]},
    "mail": {"hosts": ["a"], "port": 4650, "run": "/run/laws/mail", "answer": {"password": {}}, "request": {
      "t": {"default": ""}, "i": {"type": "integer", "default": 0}, "b": {"type": "boolean", "default": false}, "l": {"type": "strings", "default": []}, "p": {"pattern": "a*"}}}}
}`

// with returns oddBase with one value changed.
func with(place string, value any) json.RawMessage {
	var top map[string]any
	if err := json.Unmarshal([]byte(oddBase), &top); err != nil {
		panic(err)
	}
	put(top, "trust.roots", roots()[0])
	put(top, "hosts.a.sshHostKey", hostKeys()[0])
	put(top, "hosts.a.capabilities", []string{"ingress"})
	put(top, place, value)
	return must(json.Marshal(top))
}

func put(set map[string]any, place string, value any) {
	first, rest, deeper := strings.Cut(place, ".")
	if !deeper {
		set[first] = value
		return
	}
	if set[first] == nil {
		set[first] = map[string]any{}
	}
	put(set[first].(map[string]any), rest, value)
}

// TestOddValuesAreRefusedOrAccepted checks that for each odd value either the compiler refuses it
// or every program accepts it.
func TestOddValuesAreRefusedOrAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	var all []json.RawMessage
	var names []string
	values := odd()
	maps.Copy(values, oddDatabases())
	maps.Copy(values, oddGit())
	for place, values := range values {
		for _, v := range values {
			all, names = append(all, with(place, v)), append(names, fmt.Sprintf("%s = %.100s", place, must(json.Marshal(v))))
		}
	}
	r := newReaders(t)
	accepted := 0
	for i, docs := range tryAll(t, "nix-instantiate", all) {
		if docs.Report != "" || refused(all[i]) {
			continue
		}
		accepted++
		if err := r.refusal(docs); err != nil {
			t.Errorf("%s compiles, and is refused: %v", names[i], err)
		}
	}
	if accepted < len(all)/3 || accepted == len(all) {
		t.Errorf("%d of %d compile", accepted, len(all))
	}
}

// refused reports whether the compiler refuses roots and bundles that Nix cannot decode.
func refused(topology json.RawMessage) bool {
	var c struct {
		TrustDomain string
		Trust       struct{ Roots []string }
		Federated   map[string]federated
	}
	if err := json.Unmarshal(topology, &c); err != nil {
		panic(err)
	}
	bundles := map[string]compile.Federated{}
	for name, f := range c.Federated {
		bundles[name] = compile.Federated{TrustDomain: f.TrustDomain, Bundle: f.Bundle}
	}
	for _, f := range append(compile.CheckRoots(c.Trust.Roots, c.TrustDomain, time.Now()), compile.CheckBundles(bundles, time.Now())...) {
		if f.IsError() {
			return true
		}
	}
	return false
}

// oddBy and oddOn return policies of tenant t.
func oddBy(subject string) []any {
	return []any{map[string]any{"subject": subject, "action": "a.b", "object": "tenant:t"}}
}

func oddOn(object string) []any {
	return []any{map[string]any{"subject": "role:a", "action": "a.b", "object": object}}
}
