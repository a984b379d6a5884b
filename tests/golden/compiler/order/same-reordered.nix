{
  base,
  key,
  merge,
  ...
}:
merge base {
  providers.oidc = {
    issuer = "https://auth.example.org";
    hosts = [
      "beta"
      "beta"
    ];
  };
  serviceGroups = {
    two = [ "wiki" ];
    one = [
      "wiki"
      "blog"
    ];
  };
  roles.writer = {
    serviceGroups = [
      "two"
      "one"
    ];
    services = [
      "wiki"
      "blog"
      "wiki"
    ];
  };
  users.bea.roles = [
    "writer"
    "reader"
    "writer"
  ];
  services.blog = {
    port = 8081;
    host = "beta";
  };
  services.wiki = {
    sso = {
      redirectURIs = [
        "https://b.example.org/"
        "https://a.example.org/"
      ];
      mode = "oidc";
    };
    roles = [
      "writer"
      "reader"
    ];
    hosts = [
      "beta"
      "alpha"
    ];
    host = "";
  };
  hosts.beta.users = [
    "bea"
    "ann"
  ];
  hosts.alpha.roles = [
    "node"
    "writer"
    "reader"
  ];
}
