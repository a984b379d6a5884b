# An ingress, alpha, is told the public name of what it reaches. Beta reaches the same and takes
# in nobody; gamma takes in strangers and reaches nothing that has a name.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    capabilities = [ "ingress" ];
    roles = [ "blogger" ];
  };
  services = {
    wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
    };
    blog = {
      host = "beta";
      port = 8081;
      visibility = "public";
    };
    proxy = {
      host = "alpha";
      port = 443;
      visibility = "host";
      user = "nginx";
      roles = [ "reader" ];
    };
  };
  roles.blogger.services = [ "blog" ];
}
