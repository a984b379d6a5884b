# The ingress renames the groups, and the external issuer knows the scope.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services = {
    wiki.sso = {
      mode = "oidc";
      redirectURIs = [ "https://wiki.example.org/" ];
      scopes = [ "wiki" ];
    };
    notes = {
      host = "beta";
      port = 8090;
      visibility = "public";
      tlsName = "notes.example.org";
      sso = {
        mode = "gate";
        groups.editor = [ "writers" ];
      };
    };
  };
  roles.ingress.services = [ "notes" ];
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
    registration = "https://auth.example.org/register";
  };
}
