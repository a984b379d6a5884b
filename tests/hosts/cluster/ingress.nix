# Mgmt01 is the ingress for the wiki, at a name outside DNS.
base: {
  hosts = base.hosts // {
    mgmt01 = base.hosts.mgmt01 // {
      capabilities = [ "ingress" ];
    };
  };
  services = base.services // {
    wiki = base.services.wiki // {
      visibility = "public";
      tlsName = "wiki.internal";
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
    gate.services = [ "wiki" ];
  };
  providers = base.providers // {
    tls.hosts = [ "drhorrible" ];
  };
}
