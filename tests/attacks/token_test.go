package attacks

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// tokenRequest returns a request for the JWT-SVIDs of the service wiki for some audiences.
func tokenRequest(audiences ...string) hostapi.Request {
	return hostapi.Request{Need: "jwt-service-wiki", Serial: 1, Generation: 1,
		Body: kit.JSON(document.JWTRequest{Issuer: kit.TokenIssuer, ID: kit.ID("service/wiki"), Audiences: audiences})}
}

// TestTokens attacks the issuer of JWT-SVIDs on provider p with requests that it must refuse.
func TestTokens(t *testing.T) {
	do := func(t *testing.T, client *hostapi.Client, r hostapi.Request) error {
		_, err := client.Do(t.Context(), hostapi.Path("jwt"), r)
		return err
	}
	row := func(node, code string) local.Decision {
		return local.Decision{Caller: kit.ID("node/" + node).String(), Kind: "jwt", Need: "jwt-service-wiki", Decision: "denied", Code: code}
	}
	run(t, []attack{
		{
			name: "tokens of a service on another host",
			try: func(t *testing.T, c *cluster) error {
				return do(t, c.client(t, c.c, "jwt"), tokenRequest("vault"))
			},
			refusal: "the policy does not grant it",
			row:     row("c", "not-granted"),
		},
		{
			name: "a token for another audience",
			try: func(t *testing.T, c *cluster) error {
				return do(t, c.client(t, c.b, "jwt"), tokenRequest("vault", "bank"))
			},
			refusal: "the policy grants",
			row:     row("b", "mismatch"),
		},
		{
			name: "tokens by a copied certificate",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.b, "jwt")
				client.HostKey = nil
				return do(t, client, tokenRequest("vault"))
			},
			refusal: "device",
			row:     row("b", "device-key"),
		},
	})
}

// workload serves the Workload API of a host as the host's units do. It returns the address of the
// API.
func (c *cluster) workload(t *testing.T, h *local.Host) string {
	t.Helper()
	socket := filepath.Join(c.sockets, h.Name+"-workload.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" workload --state "$1"`, filepath.Join(c.Bin, "flor"), string(h.Layout()))
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = os.Remove(socket)
	})
	return "unix://" + socket
}

// TestTokenVerified checks that a client of another project can fetch a JWT-SVID, and that a
// verifier of another project accepts it for its audience.
func TestTokenVerified(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), local.Limit)
	defer cancel()
	source, err := workloadapi.NewJWTSource(ctx, workloadapi.WithClientOptions(workloadapi.WithAddr(c.workload(t, c.b))))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	svid, err := source.FetchJWTSVID(ctx, jwtsvid.Params{Audience: "vault"})
	if err != nil {
		t.Fatal(err)
	}
	if svid.ID.String() != kit.ID("service/wiki").String() || time.Until(svid.Expiry) < 2*time.Minute || time.Until(svid.Expiry) > 5*time.Minute {
		t.Errorf("%s until %s", svid.ID, svid.Expiry)
	}
	if _, err := jwtsvid.ParseAndValidate(svid.Marshal(), source, []string{"vault"}); err != nil {
		t.Errorf("with the keys of the Workload API: %v", err)
	}
	if _, err := source.FetchJWTSVID(ctx, jwtsvid.Params{Audience: "bank"}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "services.wiki.jwtAudiences") {
		t.Errorf("for another audience: %v", err)
	}

	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.loopback+".0.1:5557")
	}}}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, web), kit.TokenIssuer)
	if err != nil {
		t.Fatal(err)
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: "vault"}).Verify(ctx, svid.Marshal())
	if err != nil || token.Subject != svid.ID.String() {
		t.Errorf("by OIDC discovery: %v, %v", token, err)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: "bank"}).Verify(ctx, svid.Marshal()); err == nil {
		t.Error("accepted for another audience")
	}
	var issued bool
	for _, d := range c.audit(t, time.Time{}) {
		issued = issued || matches(d, local.Decision{Caller: kit.ID("node/b").String(), Kind: "jwt", Need: "jwt-service-wiki", Decision: "granted"})
	}
	if !issued {
		t.Error("no audit row of the token")
	}
	var delivered map[string]string
	b, err := hostdir.ReadDelivered(c.b.Layout().Need("jwt-service-wiki"), document.FileTokens)
	if err == nil {
		err = json.Unmarshal(b, &delivered)
	}
	if err != nil || len(delivered) != 1 {
		t.Errorf("delivered for %d audiences, %v", len(delivered), err)
	}
}
