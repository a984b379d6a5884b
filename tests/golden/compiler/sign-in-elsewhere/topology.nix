# Services sign people in at the issuer of another cluster, and one of that cluster at the issuer
# here.
{ base, key, merge, ... }:
merge base {
  clusters.blue = {
    oidc = {
      issuer = "https://auth.blue.example";
      hosts.gate = [
        "gate.blue.example:4603"
        "[2001:db8::7]:4603"
      ];
    };
    clients = {
      tickets = {
        nodes = {
        gate = key "gate";
        apex = key "apex";
      };
        redirectURIs = [ "https://tickets.example.org/callback" ];
        postLogoutRedirectURIs = [ "https://tickets.example.org/" ];
        scopes = [
          "profile"
          "groups"
        ];
        allowedGroups = [ "support" ];
        groups.agents = [ "support" ];
        claims.login = "preferred_username";
        generation = 2;
      };
      "gate/board" = {
        nodes = {
        gate = key "gate";
      };
        redirectURIs = [ "https://board.example.org/callback" ];
        public = true;
      };
    };
  };
  services.wiki.sso = {
    mode = "oidc";
    cluster = "blue";
    redirectURIs = [ "https://wiki.example.org/callback" ];
    allowedGroups = [ "writers" ];
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    visibility = "host";
  };
  services.docs = {
    host = "beta";
    port = 8081;
    visibility = "host";
    sso = {
      mode = "oidc";
      redirectURIs = [ "https://docs.example.org/callback" ];
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
