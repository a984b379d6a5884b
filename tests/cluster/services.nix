facts: {
  # The pages of the OIDC issuer, see providers.nix. The provider serves them at port 5556 by
  # default.
  auth = {
    host = "drhorrible";
    port = 5556;
  };

  metrics = {
    host = "mgmt01";
    port = 4657;
  };

  outline = {
    host = "ursula";
    port = 4654;
    user = facts.account;
    roles = [ "oidc-client" ];
    visibility = "public";
    tlsName = "outline.example.org";
    sso = {
      mode = "oidc";
      restart = "outline.service";
      redirectURIs = [ "http://outline.demo.flor.rete:4654/auth/oidc.callback" ];
    };
  };

  # The time (RFC 868), over UDP.
  time = {
    host = "ursula";
    port = 4656;
    protocol = "udp";
  };

  wiki = {
    host = "ursula";
    port = 4655;
    # A secret: only its name is in the topology, and the provider has its content.
    files.smtp-password = {
      ref = "wiki/smtp-password";
      restart = "wiki.service";
    };
  };
}
