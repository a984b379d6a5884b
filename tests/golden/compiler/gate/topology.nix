# Sign-ins that ingresses require: two ingresses share the client of the wiki, which only people
# in the group writers pass. The notes are at one ingress, with rules for paths, one of which leads
# to another port. The forwarder of the host that publishes a service with a gate learns the
# ingresses, but not for a port to which no public name leads.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  hosts.beta = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services = {
    auth = {
      host = "alpha";
      port = 5556;
      listenPort = 80;
    };
    wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
      tlsAliases = [ "docs.example.org" ];
      sso = {
        mode = "gate";
        allowedGroups = [ "writers" ];
        groups.editor = [
          "writers"
          "staff"
        ];
        session = 8;
      };
    };
    notes = {
      host = "beta";
      ports = {
        http = 8090;
        live = 8091;
        metrics = 8092;
      };
      visibility = "public";
      tlsName = "notes.example.org";
      ingress = {
        hosts = [ "beta" ];
        paths."/live".port = "live";
        paths."/metrics".deny = true;
      };
      sso.mode = "gate";
    };
  };
  users.ann.roles = [ "sign-in" ];
  roles = {
    ingress = {
      services = [
        "auth"
        "notes"
        "wiki"
      ];
    };
    sign-in.services = [ "auth" ];
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
  };
}
