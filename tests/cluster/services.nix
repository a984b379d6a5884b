facts: {
  # The pages of the OIDC issuer, see providers.nix: 5556 is where the provider serves them
  # unless its settings say otherwise.
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

  # Tells the time (RFC 868), over UDP.
  time = {
    host = "ursula";
    port = 4656;
    protocol = "udp";
  };

  wiki = {
    host = "ursula";
    port = 4655;
    # A secret: the topology names it, the provider has it.
    files.smtp-password = {
      ref = "wiki/smtp-password";
      restart = "wiki.service";
    };
  };
}
