package ingress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
)

const claimed = "198.51.100.66"

// claims returns request headers with which a client pretends to be another client.
func claims() map[string]string {
	all := map[string]string{}
	for _, name := range append([]string{"X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X_Real_IP", "X-Real_IP", "X.Real.IP", "True_Client_IP"}, strangersClaims...) {
		all[name] = claimed
	}
	return all
}

// claimed checks that a service does not receive the headers with which a client pretends to be
// another, and that a client cannot have the proxy remove its own headers, which a Connection header
// may name (RFC 9110, section 7.6.1).
func (c *cluster) claimed(t *testing.T) {
	t.Helper()
	for _, connection := range []string{"keep-alive", "X-Real-IP, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host", "close, x-real-ip, x-forwarded-for", "Upgrade, X-Real-IP"} {
		c.claimedWith(t, connection)
	}
}

func (c *cluster) claimedWith(t *testing.T, connection string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "https://outline.example/headers", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", "the stranger's own")
	req.Header.Set("Connection", connection)
	for name, value := range claims() {
		req.Header[name] = []string{value}
	}
	resp, err := c.browser("").Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := textproto.NewReader(bufio.NewReader(io.MultiReader(resp.Body, strings.NewReader("\r\n")))).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	if got.Get("X-Request-Id") == "" {
		t.Error("a header that claims nothing was removed")
	}
	unclaimed(t, got)
}

// unclaimed checks that the headers a service received contain no false claim, and that they
// contain the true address of the client.
func unclaimed(t *testing.T, got map[string][]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if strings.Contains(fmt.Sprint(got[name]), claimed) {
			t.Errorf("a service learns %s: %q from a stranger", name, got[name])
		}
	}
	for _, name := range []string{"X-Real-Ip", "X-Forwarded-For"} {
		if !slices.Equal(got[name], []string{"127.0.0.1"}) {
			t.Errorf("%s is %q, want the address that the stranger has", name, got[name])
		}
	}
}

// learned returns the metadata that a gRPC service received with a call, under names that a proxy
// passes back.
func learned(ctx context.Context) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx)
	all := metadata.MD{}
	for name, values := range md {
		if !strings.HasPrefix(name, ":") {
			all["learned-"+name] = values
		}
	}
	return all
}
