{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 1;
  };
  services.shop = {
    host = "beta";
    port = 2;
  };
  roles.buyer.services = [ "shop" ];
}
