# The services of the cluster that is attacked, on hosts `p` and `b`. Their programs are those of the
# tests.
facts:
let
  on =
    name: port: more:
    {
      host = name;
      inherit port;
      upstream = "${facts.loopback}.0.2:${toString port}";
      user = facts.account;
    }
    // more;
in
{
  auth = {
    host = "p";
    port = 5556;
    listenPort = 80;
    upstream = "${facts.loopback}.0.1:5556";
  };
  bytes = {
    host = "b";
    listenPort = 8908;
    upstream = "unix:${facts.sockets}/bytes.sock";
    user = facts.account;
    identity = "proxy-v2";
  };
  deaf = on "b" 8906 { };
  down = on "b" 8905 { };
  echo = on "b" 8901 { scope = "both"; };
  heard = on "b" 8902 { protocol = "udp"; };
  inner = on "b" 8911 { };
  mail = on "b" 8909 {
    identity = "proxy-v2";
    visibility = "public";
    publicPorts.smtp = {
      port = 2525;
      from = [ "${facts.loopback}.0.66" ];
      limits.connections = 2;
    };
  };
  queue = on "b" 8910 {
    visibility = "public";
    publicPorts.mq = {
      port = 8883;
      serverNames = [ "mq.example.org" ];
    };
  };
  requests = on "b" 8907 {
    protocol = "http";
    identity = "http";
  };
  secret = on "b" 8903 { };
  vault = on "b" 8912 { };
  tokens = {
    host = "p";
    port = 5557;
    listenPort = 80;
    upstream = "${facts.loopback}.0.1:5557";
  };
  wiki = on "b" 8904 {
    listenPort = 80;
    workloadApi = true;
    jwtAudiences = [ "vault" ];
    roles = [ "oidc-client" ];
    sso = {
      mode = "oidc";
      restart = "wiki.service";
      redirectURIs = [ "http://wiki.demo.flor.rete/callback" ];
    };
    files.password = {
      ref = "wiki/password";
      restart = "wiki.service";
    };
  };
}
