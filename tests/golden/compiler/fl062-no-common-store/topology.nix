# Sign-in and files have state, or files, that several hosts would need to share.
{ base, merge, ... }:
merge base {
  providers = {
    file.hosts = [
      "beta"
      "alpha"
    ];
    oidc = {
      hosts = [
        "alpha"
        "beta"
      ];
      issuer = "https://auth.example.org";
    };
  };
}
