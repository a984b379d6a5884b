# Mgmt01 is the ingress for the wiki, at a name outside DNS and at a port, for a name server, and for
# a board that has no sign-in of its own.
base: {
  hosts = base.hosts // {
    mgmt01 = base.hosts.mgmt01 // {
      capabilities = [ "ingress" ];
      roles = base.hosts.mgmt01.roles ++ [ "edge" ];
    };
  };
  services = base.services // {
    wiki = base.services.wiki // {
      visibility = "public";
      tlsName = "wiki.internal";
      publicPorts.plain = 8080;
    };
    names = {
      host = "ursula";
      port = 5353;
      listenPort = 53;
      protocol = "udp";
      visibility = "public";
      publicPorts.names = 53;
    };
    board = {
      host = "ursula";
      port = 3000;
      visibility = "public";
      tlsName = "board.internal";
      sso = {
        mode = "gate";
        allowedGroups = [ "writers" ];
      };
    };
    # The identity under which nginx's workers act.
    proxy = {
      host = "mgmt01";
      port = 443;
      visibility = "host";
      user = "www-data";
      roles = [ "gate" ];
    };
  };
  roles = base.roles // {
    gate.services = [
      "board"
      "wiki"
    ];
    edge.services = [
      "auth"
      "board"
      "names"
      "wiki"
    ];
  };
  providers = base.providers // {
    tls.hosts = [ "drhorrible" ];
  };
}
