// The dedicated worker of index.js.

import { serve } from './serve.js';

serve(globalThis);
