// Package browser tests a cluster as people use it. A real browser visits https://outline.example.
// The connection passes through nginx on the ingress and the forwarders to a service, which asks
// people to sign in.
package browser

import (
	"net/http"
	"testing"

	"github.com/florete/florete/tests/chromium"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/program"
)

const (
	page   = "https://outline.example/"
	board  = "https://board.example/"
	photos = "https://photos.example/"
)

// TestBrowser checks that a person on the internet can sign in and reaches only published names.
// The person stays signed in while the ingress restarts, and when another machine takes its place.
// One of the published services runs on a host behind a NAT, and the ingress is also the relay for
// it.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	chromium.Require(t, "chromium", "chromium")
	chromium.Require(t, "certutil", "libnss3-tools")
	program.Require(t, "nginx")
	agenttest.Root(t, "can make a network namespace")
	build(t)
	if !agenttest.OwnNetwork(t) {
		return
	}
	c := start(t)
	c.serve(t)
	c.openGate(t, "first")
	c.fetchRoot(t)
	c.settles(t)
	b := chromium.Start(t, chromium.Config{Names: map[string]string{"*": gateAt}, Roots: []string{c.root}})

	signIn(b, page, who, "sign-in")
	b.Picture("signed-in")
	atBoard(b)
	c.unpublished(t, b)
	atHome(b)

	c.closeGate(t)
	if refusal := b.Visit(page); refusal != "net::ERR_CONNECTION_REFUSED" {
		t.Errorf("without an ingress: %q: this test sees nothing of it", refusal)
	}
	c.openGate(t, "first")
	c.settles(t)
	b.Visit(page)
	b.Wait(who)

	c.rebuildGate(t)
	b.Visit(page)
	b.Wait(who)
	atHome(b)
	b.Call("Network.clearBrowserCookies", struct{}{}, nil)
	signIn(b, page, who, "sign-in-again")
	c.unpublished(t, b)
}

const who = `document.querySelector("#who")?.innerText == "alice"`

// atHome visits the service of a host behind a NAT, to which nobody can connect directly.
func atHome(b *chromium.Browser) {
	b.Visit(photos)
	b.Wait(`document.querySelector("#photos")?.innerText == "photos at home"`)
}

// atBoard signs in at a service for which the ingress signs people in, and signs out again.
func atBoard(b *chromium.Browser) {
	who := `document.querySelector("#who")?.innerText == "alice@` + domain + `"`
	signIn(b, board, who, "board")
	b.Visit(board + ".florete/sign-out")
	b.Wait(`document.body?.innerText.includes("You are signed out.")`)
	signIn(b, board, who, "board-again")
}

// signIn enters the password on the page to which a service or the ingress redirects, and waits for
// the page of the service, which shows the person.
func signIn(b *chromium.Browser, page, who, picture string) {
	b.Visit(page)
	b.Wait(`document.activeElement?.id == "login"`)
	b.Wait(`location.origin == "https://auth.example" && isSecureContext`)
	b.Write("#login", "alice@"+domain)
	b.Write("#password", password)
	b.Picture(picture)
	b.Eval(`document.querySelector("button[type=submit]").click()`)
	b.Wait(who)
	b.Wait(`location.href == "` + page + `"`)
}

// unpublished checks that names that are not published lead to no service. This includes the wiki,
// although the ingress host itself may reach it. Over HTTP, the ingress says that it has no such
// site.
func (c *cluster) unpublished(t *testing.T, b *chromium.Browser) {
	t.Helper()
	for _, name := range []string{"wiki.example", "outline." + domain + ".rete", "a.outline.example", "example", gateAt} {
		if refusal := b.Visit("https://" + name + "/"); refusal == "" {
			t.Errorf("https://%s/ is not published, and is %v", name, b.Eval("document.documentElement.outerHTML"))
		}
		b.Visit("http://" + name + "/")
		b.Wait(`document.body?.innerText.trim() == "This server has no site of that name."`)
	}
	res, err := c.stranger("outline.example").Get("https://wiki.example/")
	check(t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the wiki in the handshake of outline: %s, want 421", res.Status)
	}
}
