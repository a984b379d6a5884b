package hostapi_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// listen returns a TCP listener at an address of this machine.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestAddresses checks that a client uses the first address at which the provider proves its
// identity. Addresses of other machines, and addresses that accept connections but never answer,
// must not delay the client.
func TestAddresses(t *testing.T) {
	d := domain{t, kit.NewCA()}
	empty := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"values":{"a":"b"}}`) }
	serve := func(address string, svid *tls.Certificate) string {
		l := listen(t, address)
		d.serve(l, svid, empty)
		return l.Addr().String()
	}
	own, another := d.Issue(provider, time.Hour), d.Issue(kit.ProviderID("raishan", "cert"), time.Hour)
	real, six, elsewhere := serve("127.0.0.1:0", own), serve("[::1]:0", own), serve("127.0.0.1:0", another)
	silent := listen(t, "127.0.0.1:0").Addr().String()
	nobody := kit.Address()
	_, port, _ := net.SplitHostPort(real)
	_, otherPort, _ := net.SplitHostPort(elsewhere)
	kit.Names(t, map[string][]string{"forge.example.org": {"127.0.1.1", "127.0.0.1"}})

	for name, c := range map[string]struct {
		addresses []string
		kind      hostapi.Class
		code      string
	}{
		"the first":                      {addresses: []string{real, silent}},
		"beside one that is silent":      {addresses: []string{silent, silent, six}},
		"behind one that refuses":        {addresses: []string{nobody, real}},
		"beside another's":               {addresses: []string{elsewhere, real}},
		"by a name with two addresses":   {addresses: []string{"forge.example.org:" + port}},
		"behind a name that is not":      {addresses: []string{"none.example.org:" + port, real}},
		"another's alone":                {[]string{elsewhere}, hostapi.Transient, hostapi.CodeUntrusted.Name},
		"another's, and one is no way":   {[]string{elsewhere, nobody}, hostapi.Transient, hostapi.CodeUnavailable.Name},
		"another's, and silence, of one": {[]string{"forge.example.org:" + otherPort}, hostapi.Transient, hostapi.CodeUnavailable.Name},
		"another's at both of them":      {[]string{elsewhere, elsewhere}, hostapi.Transient, hostapi.CodeUntrusted.Name},
		"a name that does not exist now": {[]string{"none.example.org:" + port}, hostapi.Transient, hostapi.CodeUnavailable.Name},
	} {
		t.Run(name, func(t *testing.T) {
			client := d.client(own, empty)
			client.Dial = nil
			client.Provider.Addresses = document.Addresses(c.addresses)
			_, err := client.Do(t.Context(), hostapi.Path("oidc"), registration)
			if c.code != "" {
				providertest.WantError(t, err, hostapi.Code{Name: c.code, Class: c.kind})
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
