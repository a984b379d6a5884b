package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/ingress"
	"github.com/florete/florete/internal/unixsock"
)

func newIngressCmd(m *instance) *cobra.Command {
	c := ingress.Config{}
	nginx := &ingress.Nginx{Command: []string{"nginx"}, HTTP: ingress.DefaultHTTP, HTTPS: ingress.DefaultHTTPS}
	caddy := &ingress.Caddy{HTTP: ingress.DefaultHTTP, HTTPS: ingress.DefaultHTTPS}
	var server, names, certificates, socket string
	cmd := &cobra.Command{
		Use:   "ingress",
		Short: "Have nginx or Caddy take in strangers for the cluster's public names",
		Long: `Have the reverse proxy of this host take in strangers for the public names in its
manifest, with the certificates that providers.tls delivers, until it is stopped: nginx,
which includes the file, or a Caddy that serves nothing else. What the proxy does not
accept is taken back. When it is stopped, the proxy goes on with what it has.

With --ensure it is for a proxy that is no host of the cluster: it follows no manifest, but
what a kind of the topology's own sends to /proxy/ensure on a Unix socket, for its group.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch c.Log = slog.Default(); server {
			case "nginx":
				c.Proxy = nginx
			case "caddy":
				if err := caddy.Validate(); err != nil {
					return err
				}
				caddy.Keys = filepath.Join("/run", m.Unit("ingress"))
				c.Proxy = caddy
			default:
				return fmt.Errorf("--server %q: want nginx or caddy", server)
			}
			if socket == "" {
				return ingress.Run(cmd.Context(), c)
			}
			l, err := unixsock.Listen(socket, "unix", 0o660)
			if err != nil {
				return err
			}
			e := ingress.Ensure{File: names, Certificates: certificates, Proxy: c.Proxy, Poll: 10 * time.Second, Log: c.Log}
			return e.Serve(cmd.Context(), l)
		},
	}
	m.state(cmd, &c.Layout)
	f := cmd.Flags()
	f.StringVar(&server, "server", "nginx", "the proxy: nginx or caddy")
	f.StringVar(&nginx.File, "file", ingress.DefaultNginxFile, "file that nginx includes in its http block")
	f.StringVar(&caddy.Admin, "caddy", ingress.DefaultCaddy, "Unix socket of Caddy's admin API, writable by Caddy's account alone")
	f.StringVar(&socket, "ensure", "", "Unix socket for /proxy/ensure, instead of the manifest")
	f.StringVar(&names, "names", "/var/lib/florete-proxy/names.json", "with --ensure: file of the names that were sent")
	f.StringVar(&certificates, "certificates", "/var/lib/florete-proxy/certificates", "with --ensure: directory with <name>/fullchain.pem and key.pem")
	return cmd
}
