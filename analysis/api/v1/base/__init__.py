"""What all resources of version 1 share: strict input, paging, ETags, rate limits, serializers, parameters."""
