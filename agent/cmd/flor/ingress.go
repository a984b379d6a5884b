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
		Short: "Configure nginx or Caddy for public names",
		Long: `Configure nginx or Caddy on this host to serve the public names in the host's manifest. systemd
runs this command. The command updates the configuration when the manifest changes, or when the
provider of kind tls delivers a new certificate. If the proxy refuses a new configuration, the
previous configuration stays in use. When the command stops, the proxy keeps its configuration.

nginx must include the file that --file names. Caddy must be used for nothing else, because the
command replaces Caddy's whole configuration.

With --ensure, the command configures a proxy on a machine that is not a host of the cluster. It
then takes the names from requests to /proxy/ensure on a Unix socket instead of the manifest.`,
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
			c.Socket = filepath.Join("/run", m.Unit("ingress"), "gate.sock")
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
	f.StringVar(&server, "server", "nginx", "`PROXY` to configure: nginx or caddy")
	f.StringVar(&nginx.File, "file", ingress.DefaultNginxFile, "`FILE` to write, which nginx includes in its http block")
	f.StringVar(&caddy.Admin, "caddy", ingress.DefaultCaddy, "path of the Unix `SOCKET` of Caddy's admin API, to which only Caddy's account may write")
	f.StringVar(&socket, "ensure", "", "serve /proxy/ensure on this Unix `SOCKET` instead of following the manifest")
	f.StringVar(&names, "names", "/var/lib/florete-proxy/names.json", "`FILE` in which to keep the names that were sent, for --ensure")
	f.StringVar(&certificates, "certificates", "/var/lib/florete-proxy/certificates", "`DIR` that contains NAME/fullchain.pem and NAME/key.pem, for --ensure")
	return cmd
}
