# Claims of a client: the wiki knows people by names of its own, and asks for a scope of its own.
{ base, merge, ... }:
merge base {
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    allowedGroups = [ "writers" ];
    scopes = [
      "profile"
      "wiki-roles"
    ];
    claims = {
      nickname = "preferred_username";
      roles = "groups";
    };
    groups = {
      "Site Admin" = [ "ops" ];
      editor = [
        "writers"
        "ops"
      ];
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
