package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/ingress"
)

func newIngressCmd(m *instance) *cobra.Command {
	c := ingress.Config{}
	nginx := &ingress.Nginx{Command: []string{"nginx"}, HTTP: ingress.DefaultHTTP, HTTPS: ingress.DefaultHTTPS}
	caddy := &ingress.Caddy{HTTP: ingress.DefaultHTTP, HTTPS: ingress.DefaultHTTPS}
	var server string
	cmd := &cobra.Command{
		Use:   "ingress",
		Short: "Have nginx or Caddy take in strangers for the cluster's public names",
		Long: `Have the reverse proxy of this host take in strangers for the public names in its
manifest, with the certificates that providers.tls delivers, until it is stopped: nginx,
which includes the file, or a Caddy that serves nothing else. What the proxy does not
accept is taken back. When it is stopped, the proxy goes on with what it has.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch c.Log = slog.Default(); server {
			case "nginx":
				c.Proxy = nginx
			case "caddy":
				c.Proxy = caddy
			default:
				return fmt.Errorf("--server %q: want nginx or caddy", server)
			}
			return ingress.Run(cmd.Context(), c)
		},
	}
	m.state(cmd, &c.Layout)
	f := cmd.Flags()
	f.StringVar(&server, "server", "nginx", "the proxy: nginx or caddy")
	f.StringVar(&nginx.File, "file", ingress.DefaultNginxFile, "file that nginx includes in its http block")
	f.StringVar(&caddy.Admin, "caddy", ingress.DefaultCaddy, "address of Caddy's admin API")
	return cmd
}
