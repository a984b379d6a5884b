# The order of lists and repeated elements have no effect.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.roles = [
    "reader"
    "writer"
  ];
  hosts.beta.users = [
    "ann"
    "bea"
  ];
  services.wiki = {
    host = "";
    hosts = [
      "alpha"
      "beta"
    ];
    roles = [
      "reader"
      "writer"
    ];
    sso = {
      mode = "oidc";
      redirectURIs = [
        "https://a.example.org/"
        "https://b.example.org/"
      ];
    };
  };
  services.blog = {
    host = "beta";
    port = 8081;
  };
  users.bea.roles = [
    "reader"
    "writer"
  ];
  roles.writer = {
    services = [
      "blog"
      "wiki"
    ];
    serviceGroups = [
      "one"
      "two"
    ];
  };
  serviceGroups = {
    one = [
      "blog"
      "wiki"
    ];
    two = [ "wiki" ];
  };
  providers.oidc = {
    hosts = [ "beta" ];
    issuer = "https://auth.example.org";
  };
}
